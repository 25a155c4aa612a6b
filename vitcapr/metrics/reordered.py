"""The first matches of a retriever in a new order: what is scored again, and the ranks of the true matches after it."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from vitcapr.arrays import read_arrays, write_arrays
from vitcapr.chosen_weight import ChosenWeight
from vitcapr.errors import UserError
from vitcapr.metrics.ranks import Ranks, Truth, average_precision
from vitcapr.metrics.retrieval_files import Embeddings

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int32]
_BLOCK = 256


@dataclass(frozen=True)
class Matches:
    """``matches.npz``: the first K matches of each of N images and M captions, with cosines and matching logits.

    Attributes:
        image_captions: (N, K) places among the captions; image_cosines, image_logits: (N, K) float32.
        caption_images: (M, L) places among the images; caption_cosines, caption_logits: (M, L) float32.
        image_row, caption_row, caption_image: as in ``embeddings.npz``.
    """

    image_captions: Places
    image_cosines: Floats
    image_logits: Floats
    caption_images: Places
    caption_cosines: Floats
    caption_logits: Floats
    image_row: Places
    caption_row: Places
    caption_image: Places

    def write(self, path: Path) -> None:
        write_arrays(path, {name: getattr(self, name) for name in _names()})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises:
        UserError: the file is missing or holds no matches.
        """
        return cls(**read_arrays(path, _names(), "a table of matches", "match the split"))

    @property
    def own(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which of the matches are true ones, (N, K) and (M, L)."""
        images = self.caption_image[self.image_captions] == np.arange(len(self.image_captions))[:, None]
        return images, self.caption_images == self.caption_image[:, None]


def _names() -> list[str]:
    return [field.name for field in fields(Matches)]


@dataclass(frozen=True)
class Mix:
    """How a cosine and a matching logit become one score.

    Attributes:
        weight: of the logit; the cosine has the rest.
        cosine_scale, logit_scale: what each is divided by first: their spread over the matches of validation.
    """

    weight: float
    cosine_scale: float
    logit_scale: float

    def of(self, cosines: Floats, logits: Floats) -> Floats:
        mixed: Floats = (1 - self.weight) * (cosines / np.float32(self.cosine_scale)) + self.weight * (
            logits / np.float32(self.logit_scale)
        )
        return mixed


@dataclass(frozen=True)
class CrossWeight(ChosenWeight):
    """The mix that validation chose."""

    FORMAT: ClassVar[str] = "vitcapr-cross-weight-1"
    STAGE: ClassVar[str] = "weigh_cross_encoder"

    cosine_scale: float
    logit_scale: float
    chosen_by: str

    @property
    def mix(self) -> Mix:
        return Mix(self.weight, self.cosine_scale, self.logit_scale)


def first_matches(found: Embeddings, top: int) -> tuple[Places, Floats, Places, Floats]:
    """For each image the ``top`` captions of highest cosine, for each caption the ``top`` images, and the cosines.

    The best comes first. Where cosines are equal, a wrong match stands before a true one, as the ranks have it.
    """
    caption_image = found.caption_image
    places = np.arange(len(found.images))
    of_images = _first(found.images, found.captions, top, lambda rows: caption_image == places[rows, None])
    of_captions = _first(found.captions, found.images, top, lambda rows: places == caption_image[rows, None])
    return *of_images, *of_captions


def _first(queries: Floats, items: Floats, top: int, own: Any) -> tuple[Places, Floats]:
    top = min(top, len(items))
    places, cosines = np.empty((len(queries), top), np.int32), np.empty((len(queries), top), np.float32)
    for start in range(0, len(queries), _BLOCK):
        rows = slice(start, start + _BLOCK)
        # In float64 and rounded once, as in the ranks: a product in float32 breaks ties at random.
        scores = (queries[rows].astype(np.float64) @ items.T).astype(np.float32)
        # A hair that float32 does not show, in favour of the wrong ones.
        lowered = scores.astype(np.float64)
        lowered = np.where(own(rows), np.nextafter(lowered, -np.inf), lowered)
        chosen = np.argpartition(-lowered, top - 1, axis=1)[:, :top]
        order = np.argsort(-np.take_along_axis(lowered, chosen, axis=1), axis=1, kind="stable")
        places[rows] = np.take_along_axis(chosen, order, axis=1)
        cosines[rows] = np.take_along_axis(scores, places[rows], axis=1)
    return places, cosines


def reordered_ranks(matches: Matches, before: Ranks, mix: Mix) -> Ranks:
    """The ranks after the first matches are put in the order of the mixed score; what lies beyond keeps its rank.

    Ties are pessimistic, as in :func:`vitcapr.metrics.ranks.rank_matches`. The average precision counts an image's own
    captions among its first matches alone: where these are fewer than R, it is a lower bound.

    Args:
        before: the ranks of the same images and captions by cosine.

    Raises:
        UserError: a cosine or a logit is not finite.
    """
    for name in ("image_cosines", "image_logits", "caption_cosines", "caption_logits"):
        if not np.isfinite(getattr(matches, name)).all():
            raise UserError(
                f"{name} of the matches are not finite", remedy="train the reranker again, with a smaller rate"
            )
    image_own, caption_own = matches.own
    relevant = Truth.of(matches.caption_image, len(matches.image_row)).captions_each
    image_scores = mix.of(matches.image_cosines, matches.image_logits)
    others = _others_before(image_scores, image_own, int(relevant.max()))
    precision = average_precision(others, relevant)
    caption_others = _others_before(mix.of(matches.caption_cosines, matches.caption_logits), caption_own, 1)
    return Ranks(
        np.where(image_own.any(axis=1), others[:, 0] + 1, before.i2t).astype(np.int32),
        np.where(caption_own.any(axis=1), caption_others[:, 0] + 1, before.t2i).astype(np.int32),
        precision,
    )


def _others_before(scores: Floats, own: npt.NDArray[np.bool_], count: int) -> npt.NDArray[np.int64]:
    """(Q, count): wrong matches at least as good as the best, the second best, ... true one; a true one that is not
    among the matches has all of them before it, and at least ``count``."""
    beyond = max(scores.shape[1], count)
    true = -np.sort(-np.where(own, scores, -np.inf), axis=1)[:, :count]
    true = np.pad(true, ((0, 0), (0, count - true.shape[1])), constant_values=-np.inf)
    wrong = np.where(own, -np.inf, scores)
    before = np.stack([(wrong >= true[:, [place]]).sum(axis=1) for place in range(count)], axis=1)
    return np.where(np.isfinite(true), before, beyond).astype(np.int64)
