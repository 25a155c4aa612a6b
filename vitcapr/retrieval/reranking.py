"""Reranking of the captions of a split by a trained retriever, with a fixed weight or a chosen one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vitcapr.config.captioner import RerankSettings
from vitcapr.config.parts import Reranker
from vitcapr.encoders.devices import resolve_device
from vitcapr.encoders.language_models import load_judge
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.captions import DecodedCaption
from vitcapr.formats.embeddings import RerankingWeight
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import WEIGHTS
from vitcapr.progress import Reporter
from vitcapr.retrieval.embedder import Embedder, Retriever, open_augmented_views, open_retriever
from vitcapr.retrieval.n_best import Float64s, Terms, read_n_best, write_reordered
from vitcapr.store.reader import FeatureStore


@dataclass(frozen=True)
class Candidates:
    """The candidates of a split, and the retriever that scores them.

    Attributes:
        stores: the features of the images, of the backbone and of the augmented views.
        rows: (B,) the rows of the images in the stores.
        captions: of each image.
    """

    retriever: Retriever
    stores: Sequence[FeatureStore]
    rows: NDArray[np.int64]
    captions: list[list[str]]
    reporter: Reporter

    @property
    def counts(self) -> list[int]:
        """The number of candidates of each image."""
        return [len(captions) for captions in self.captions]

    @cached_property
    def images(self) -> Embedder:
        """The retriever's embedder of rows of the stores."""
        return self.retriever.image_embedder(*self.stores)

    @cached_property
    def different(self) -> tuple[list[str], NDArray[np.intp]]:
        """The different captions, and for each candidate the place of its caption: images share captions."""
        texts, place = np.unique([text for captions in self.captions for text in captions], return_inverse=True)
        return texts.tolist(), place


@dataclass(frozen=True)
class RetrieverFiles:
    """A trained retriever, and the features of the images that it reads.

    Attributes:
        features, augmented_views: sealed manifests.
        text_encoder: hub id or folder of its text encoder, if it is not found by the name on the card.
    """

    folder: Path
    vocabulary: Path
    features: Path
    augmented_views: Sequence[Path] = ()
    text_encoder: str | None = None

    @property
    def digest(self) -> str:
        """The identity of the retriever: the sha256 of its weights.

        Raises:
            UserError: there is no trained retriever.
        """
        path = self.folder / WEIGHTS
        if not path.is_file():
            raise UserError("no trained retriever there", where=self.folder, remedy="train the retriever")
        return sha256_file(path)

    def scores(
        self, scorer: Reranker, n_bests: Sequence[DecodedCaption], data: Manifest, device: str, reporter: Reporter
    ) -> list[Float64s]:
        """Return the score of each image and each of its candidates.

        Raises:
            UserError: the features or views are those of another data set, the retriever cannot read them, or the
                scores are not a number for each candidate.
        """
        opened = open_retriever(
            self.folder, vocabulary=self.vocabulary, device=resolve_device(device), text_encoder=self.text_encoder
        )
        rows = data.rows_of([n_best.image_id for n_best in n_bests])
        stores = open_augmented_views(data, opened.augmented_views, self.features, self.augmented_views, opened.layer)
        candidates = Candidates(opened, stores, rows, [list(n_best.captions) for n_best in n_bests], reporter)
        scores = scorer.scores(candidates)
        if [len(each) for each in scores] != candidates.counts or not all(np.isfinite(each).all() for each in scores):
            what = f"the scores of the reranker '{scorer.kind}' are not a finite number for each candidate"
            raise UserError(what, remedy="correct its method scores")
        return scores


def blind_likelihoods(source: str, revision: str, n_bests: Sequence[DecodedCaption], device: str) -> list[Float64s]:
    """Return the log-likelihood of each image's candidates under a language model that sees no image."""
    captions = [caption for n_best in n_bests for caption in n_best.captions]
    different, place = np.unique(captions, return_inverse=True)
    scores = load_judge(source, revision, device)(different.tolist())[place]
    return np.split(scores, np.cumsum([len(n_best.captions) for n_best in n_bests])[:-1])


def candidate_cosines(
    images: NDArray[np.float32], captions: NDArray[np.float32], counts: Sequence[int]
) -> list[Float64s]:
    """Return the cosine of each image and each of its candidates.

    Args:
        images: (B, E), L2-normalised.
        captions: (sum of counts, E), L2-normalised, grouped by image.
        counts: candidates of each of B images.
    """
    of_image = np.repeat(np.arange(len(counts)), counts)
    cosines = np.einsum("me,me->m", images[of_image].astype(np.float64), captions.astype(np.float64))
    return np.split(cosines, np.cumsum(counts)[:-1])


def rerank_split(
    candidates: Path,
    data: Manifest,
    split: str,
    retriever: RetrieverFiles,
    settings: RerankSettings,
    tuned: Path | None,
    output: Path,
    device: str,
    reporter: Reporter,
) -> None:
    """Write the captions of a split with the candidates of every image in the order of likelihood and cosine.

    Args:
        candidates: ``captions.json`` of the split.
        tuned: the file of a chosen weight; None: ``settings`` fix it.

    Raises:
        UserError: the weight is missing, is given twice or was chosen for another retriever; see also
            :func:`read_n_best` and :meth:`RetrieverFiles.scores`.
    """
    weight, length_penalty, alpha, judge = settings.weight, settings.length_penalty, 0.0, None
    if (tuned is None) == (weight is None):
        raise UserError("a reranking has either a fixed weight or a file with a chosen one", remedy="give one of them")
    if tuned is not None:
        chosen = RerankingWeight.read(tuned)
        if chosen.retriever != retriever.digest:
            what = f"the weight in {tuned} was chosen for another retriever"
            raise UserError(what, where=retriever.folder, remedy="run tune_reranking again")
        weight, length_penalty, alpha, judge = chosen.weight, chosen.length_penalty, chosen.alpha, chosen.language_model
    assert weight is not None
    n_bests = read_n_best(candidates, data.images["image_id"].iloc[data.rows(split)].tolist())
    cosines = retriever.scores(settings.scorer, n_bests, data, device, reporter)
    blind = None if judge is None else blind_likelihoods(**judge, n_bests=n_bests, device=device)
    terms = Terms(n_bests, cosines, length_penalty, blind, alpha)
    columns = {"cosine": cosines} if blind is None else {"cosine": cosines, "blind": blind}
    extra = [dict(zip(columns, each, strict=True)) for each in zip(*columns.values(), strict=True)]
    write_reordered(output, n_bests, list(terms.scores(weight)), of_candidates=extra)
    changed = int(np.count_nonzero(terms.best(weight)))
    reporter.line(f"rerank: weight {weight:g}, another caption for {changed} of {len(n_bests)} images")
