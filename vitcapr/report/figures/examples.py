"""Example images, chosen by name, by words, with long captions, or at random; and their captions with marks."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from vitcapr.data.images import BadImage, ImageSource
from vitcapr.errors import UserError, did_you_mean
from vitcapr.formats.captions import AttentionTable, DecodedCaption, read_captions
from vitcapr.formats.claims import Claim
from vitcapr.formats.identity import match_images
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.captions.diversity import loops

_SEED = 0


class Attended(NamedTuple):
    """The caption of an image row, and the attention (L, h, w) behind its L words."""

    row: int
    caption: DecodedCaption
    weights: NDArray[np.floating]


@contextmanager
def open_images(manifest: Manifest) -> Iterator[Callable[[int], Image.Image]]:
    """Yield a function from the row of an image to the image, upright RGB."""
    with ImageSource(manifest.image_root) as source:

        def read(row: int) -> Image.Image:
            image = manifest.images.iloc[row]
            try:
                return source.open(str(image["path"]), max_pixels=int(image["width"]) * int(image["height"]))
            except BadImage as bad:
                what = f"cannot draw {image['path']}: {bad}"
                raise UserError(what, where=manifest.image_root, remedy="run the data stage again") from bad

        yield read


def rows_of_split(manifest: Manifest, split: str, captions: Mapping[str, Mapping[str, DecodedCaption]]) -> list[int]:
    """Return the image rows of ``split`` that every model has a caption for, increasing."""
    image_ids = manifest.images["image_id"].tolist()
    rows = [int(row) for row in manifest.rows(split) if all(image_ids[row] in each for each in captions.values())]
    if not rows:
        raise UserError(
            f"no image of the split {split} has a caption by {' and '.join(captions)}",
            remedy="check that the captions, the manifest and the split belong together",
        )
    return rows


@dataclass(frozen=True)
class Choice:
    """Choice of the examples in a figure: named images, then images with given words, then random ones.

    Attributes:
        count: of the examples; more if more images are named.
        images: ids or file names.
        words: words or phrases of the data set's captions; an image with any of them, and such a caption, comes first.
    """

    count: int
    images: Sequence[str] = ()
    words: Sequence[str] = ()

    def choose_images(self, data: Manifest, rows: Sequence[int]) -> list[int]:
        """Return some of the image ``rows``, in increasing order."""
        named, count = named_rows(data, self.images), max(self.count, len(self.images))
        having = set(data.captions["image_row"][self._have_words(data)])
        return choose(rows, count, lambda row: 2 * (row in named) + (row in having))

    def choose_captions(self, data: Manifest, rows: Sequence[int]) -> list[int]:
        """Return some of the caption ``rows``, in increasing order.

        Captions with the words come first, then captions of named images.
        """
        named, having = set(data.images["image_id"].iloc[named_rows(data, self.images)]), self._have_words(data)
        owners = data.captions["image_id"].tolist()
        return choose(rows, self.count, lambda row: 2 * having.iloc[row] + (owners[row] in named))

    @property
    def note(self) -> str:
        """Describe the choice of the examples."""
        random = f"drawn at random with seed {_SEED}"
        named = [*self.images, *self.words]
        return f"those of {', '.join(named)} first, the others {random}" if named else random

    def _have_words(self, data: Manifest) -> "pd.Series[bool]":
        if not self.words:
            return pd.Series(False, data.captions.index)
        # A word of a script without spaces may begin anywhere.
        pattern = "|".join((r"\b" if word.isascii() else "") + re.escape(word) for word in self.words)
        return data.captions["text"].str.contains(pattern, case=False)


def choose(rows: Sequence[int], count: int, rank: Callable[[int], int] = lambda _: 0) -> list[int]:
    """Return ``count`` of ``rows`` at random, the same every time, in increasing order.

    Rows of a higher rank come first. All rows are returned if there are fewer.
    """
    return sorted(sorted(_shuffle(rows), key=lambda row: -rank(row))[:count])


def _shuffle(rows: Sequence[int]) -> list[int]:
    return [rows[i] for i in np.random.default_rng(_SEED).permutation(len(rows))]


def choose_attended(
    manifest: Manifest, split: str, captions: Path, table: AttentionTable, choice: Choice
) -> list[Attended]:
    """Return the named images of the split, then random ones up to the count.

    All named images are returned if there are more.

    With words, each next image is one whose caption holds the most of those words that no image before it has; without,
    it is from the quarter whose captions are the nearest to the median length; captions that loop come last.
    """
    written = read_captions(captions)
    image_ids = manifest.images["image_id"].tolist()
    rows = rows_of_split(manifest, split, {str(captions): written})
    named = [row for row in named_rows(manifest, choice.images) if row in set(rows)]
    tokens = {row: written[image_ids[row]].tokens for row in rows}
    others, left = [row for row in rows if row not in named], max(choice.count, len(choice.images)) - len(named)
    chosen = list(named)
    if choice.words:
        words, others = {*choice.words}, _shuffle(others)
        missing = words.difference(*(tokens[row] for row in named))
        for _ in range(min(left, len(others))):
            best = max(others, key=lambda row: (len(missing & {*tokens[row]}), len(words & {*tokens[row]})))
            others.remove(best)
            missing -= {*tokens[best]}
            chosen.append(best)
    else:
        middle = sorted(len(tokens[row]) for row in rows)[len(rows) // 2]
        typical = sorted(others, key=lambda row: (loops(tokens[row]), abs(len(tokens[row]) - middle)))
        chosen += choose(typical[: max(left, len(typical) // 4)], left)
    captioned = [(row, written[image_ids[row]]) for row in chosen]
    return [Attended(row, caption, table.of_caption(row, caption, captions)) for row, caption in captioned]


def named_rows(manifest: Manifest, images: Sequence[str]) -> list[int]:
    """Return the rows of images named by id or by file name, in the order of the names."""
    known = [manifest.images[name].tolist() for name in ("image_id", "path")]
    rows = match_images([images], known, "figures")
    for image, row in zip(images, rows, strict=True):
        if row is None:
            what = f"figures: the data set {manifest.dataset} has no image '{image}'"
            remedy = "name an image by its id or by its file name"
            raise UserError(what, remedy=did_you_mean(image, chain(*known), remedy))
    return [row for row in rows if row is not None]


class Run(NamedTuple):
    """A word of a caption.

    Attributes:
        change: ``del`` or ``ins`` where reranking removed or added it.
        truth: what is true of the image where the word is wrong.
    """

    text: str
    change: str = ""
    truth: str = ""


def wrong_words(claims: Iterable[Claim]) -> dict[int, str]:
    """Return the correction of each wrong word by its place: "in truth four"."""
    wrong = [claim for claim in claims if not claim.right]
    return {
        place: "not in the picture" if claim.true is None else f"in truth {claim.true}"
        for claim in wrong
        for place in claim.words
    }


def mark_words(
    words: Sequence[str], truths: Mapping[int, str] = MappingProxyType({}), before: Sequence[str] | None = None
) -> list[Run]:
    """Return a caption word by word.

    Args:
        truths: for the places of wrong words, what is true.
        before: the caption that a reranking replaced: its removed words stand before the added ones.
    """
    old, runs = words if before is None else before, []
    for what, start, end, new_start, new_end in SequenceMatcher(None, old, words, autojunk=False).get_opcodes():
        change = "" if what == "equal" else "ins"
        runs += [Run(word, "del") for word in old[start:end] if change]
        runs += [Run(words[place], change, truths.get(place, "")) for place in range(new_start, new_end)]
    return runs


@dataclass(frozen=True)
class Captioned:
    """An image, what stands under it with the title of each text, and one reference."""

    image: Image.Image
    captions: Mapping[str, Sequence[Run]]
    reference: str


def read_captioned(
    data: Manifest,
    split: str,
    language: str,
    captions: Mapping[str, Mapping[str, DecodedCaption]],
    rows: Sequence[int],
    read: Callable[[int], Image.Image],
    bases: Mapping[str, str] = MappingProxyType({}),
    claims: Mapping[str, Mapping[str, Sequence[Claim]]] = MappingProxyType({}),
) -> list[Captioned]:
    """Images of a split with the caption by every system and one reference in a language.

    Args:
        rows: of the images.
        bases: for some systems, the one whose captions a reranking reordered: the words that it changed are marked.
        claims: for some systems, the claims of the caption of each image; its tokens are its words.
    """
    ids, first = data.images["image_id"], data.captions_of(split, language).drop_duplicates("image_row")
    references = first.set_index("image_row")["text"]
    examples = []
    for row in rows:
        own, runs = {name: of_system[ids.iloc[row]] for name, of_system in captions.items()}, {}
        for name, one in own.items():
            words, base = one.caption.split(), bases.get(name)
            truths = wrong_words(claims.get(name, {}).get(one.image_id, ()))
            runs[name] = mark_words(one.tokens, truths, own[base].tokens) if base else mark_words(words, truths)
        shown = {name: each or [Run("(nothing)")] for name, each in runs.items()}
        examples.append(Captioned(read(row), shown, str(references.get(row, ""))))
    return examples
