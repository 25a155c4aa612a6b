"""Leaks and odd rows: captions of two splits, images that a data set holds twice, captions with odd words."""

from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import blake2b
from unicodedata import name

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.util import hash_array

from vitcapr.formats.containers import slices
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.clip_score import unit
from vitcapr.store.reader import FeatureArray
from vitcapr.text.normalise import units_of

LANGUAGE, ONE_WORD, REPEATED, LONG = "another language", "one word", "equal for many images", "longer than read"
SHARED = "in the training split word for word"
ODD = (LANGUAGE, ONE_WORD, REPEATED, LONG, SHARED)
HELD_OUT = ("validation", "test")
EQUAL, NEAR = "one image under two ids", "nearly equal across splits"
LEAST = 0.9
"""The least cosine, about the mean, of nearly equal images."""
_BLOCK = 8192
_MOST_COMPARED = 20_000
"""Held-out images that are compared with all others; of more, so many are drawn at random."""
Pairs = list[tuple[int, int, float]]
"""Rows of two images, and the cosine of their vectors."""
MANY = 10
"""Images with one and the same caption."""
_SCRIPTS = {
    **dict.fromkeys(("zh", "yue"), ("CJK",)),
    "ja": ("CJK", "HIRAGANA", "KATAKANA"),
    "ko": ("HANGUL", "CJK"),
    **dict.fromkeys(("ru", "uk", "bg", "sr", "mk", "be", "kk"), ("CYRILLIC",)),
    "el": ("GREEK",),
    "he": ("HEBREW",),
    **dict.fromkeys(("ar", "fa", "ur", "ps"), ("ARABIC",)),
    **dict.fromkeys(("hi", "mr", "ne"), ("DEVANAGARI",)),
    "bn": ("BENGALI",),
    "ta": ("TAMIL",),
    "te": ("TELUGU",),
    "th": ("THAI",),
}
"""The scripts of languages that are not written in Latin letters, by the first words of Unicode's names of letters."""


def caption_facts(parts: Iterable[pd.DataFrame], longest: float) -> pd.DataFrame:
    """Return a row for each caption: ``image_row``, ``held_out``, and whether it is odd in each of the ways of ``ODD``.

    Args:
        parts: tables with the columns ``image_row, split, language, text``.
        longest: tokens that the encoder reads.
    """
    facts = pd.concat([_facts_of_words(part, longest) for part in parts], ignore_index=True)
    images = facts[["digest", "image_row"]].drop_duplicates()["digest"].value_counts()
    facts[REPEATED] = facts["digest"].map(images) >= MANY
    facts[SHARED] = facts["held_out"] & facts["digest"].isin(facts["digest"][facts["train"]])
    return facts[["image_row", "held_out", *ODD]]


def _facts_of_words(part: pd.DataFrame, longest: float) -> pd.DataFrame:
    """Eight bytes stand for the words of a caption, so ten million fit in memory."""
    words = [units_of(text) for text in part["text"]]
    texts = [" ".join(each or [text]) for each, text in zip(words, part["text"], strict=True)]
    return pd.DataFrame(
        {
            "image_row": part["image_row"].to_numpy(),
            "train": part["split"].to_numpy() == "train",
            "held_out": part["split"].isin(HELD_OUT).to_numpy(),
            "digest": hash_array(np.array(texts, object)),
            LANGUAGE: [is_foreign(*each) for each in zip(words, part["language"], strict=True)],
            ONE_WORD: [len(each) < 2 for each in words],
            # A word is at least a token, and two tokens are special.
            LONG: [len(text.split()) + 2 > longest for text in part["text"]],
        }
    )


def is_foreign(words: list[str], language: str) -> bool:
    """Return whether most letters of a caption are of another script than that of its language."""
    letters = [letter for word in words for letter in word if letter.isalpha()]
    expected = _SCRIPTS.get(language.lower().partition("-")[0], ("LATIN",))
    return 2 * sum(_script(letter) in expected for letter in letters) < len(letters)


@cache
def _script(letter: str) -> str:
    return name(letter, "").partition(" ")[0]


def image_leaks(data: Manifest, vectors: FeatureArray) -> tuple[pd.DataFrame, int]:
    """Return a row for each pair of similar images, and the number of compared held-out images.

    The columns are ``leak, first, second, cosine, first_split, second_split``. Held-out images are compared with those
    of other splits.
    """
    similar, compared = nearly_equal(data.image_table.column("split").to_numpy(str), vectors)
    pairs = [(EQUAL, *pair) for pair in equal_images(data.image_table.column("sha256"), vectors)]
    leaks = pd.DataFrame([*pairs, *((NEAR, *pair) for pair in similar)], columns=["leak", "first", "second", "cosine"])
    leaks = leaks.drop_duplicates(["first", "second"], ignore_index=True)
    for end in ("first", "second"):
        for target, column in ((f"{end}_split", "split"), (end, "image_id")):
            leaks[target] = data.image_table.column(column).iloc[leaks[end].astype(int)].to_numpy()
    return leaks, compared


def equal_images(sha256: "pd.Series[str]", vectors: FeatureArray) -> Pairs:
    """Images with the file of an earlier one, or with its vector: files differ, and the network sees one picture."""
    of_files = (bytes.fromhex(digest[:16]) for part in slices(sha256.to_frame()) for digest in part["sha256"])
    of_vectors = (blake2b(row.tobytes(), digest_size=8).digest() for _, block in _blocks(vectors) for row in block)
    earlier = np.arange(len(vectors))
    for digests in (of_files, of_vectors):
        keys = np.frombuffer(b"".join(digests), np.uint64)
        _, first, group = np.unique(keys, return_index=True, return_inverse=True)
        earlier = np.minimum(earlier, first[group])
    return [(int(earlier[row]), int(row), 1.0) for row in np.flatnonzero(earlier < np.arange(len(earlier)))]


def nearly_equal(splits: NDArray[np.str_], vectors: FeatureArray) -> tuple[Pairs, int]:
    """Return the most similar image of another split for each held-out image, if it is nearly equal.

    Vectors are compared about their mean, as networks give all images a large common part.

    Returns:
        The pairs, the most similar first, and the number of held-out images that were compared.
    """
    held_out = np.flatnonzero(np.isin(splits, HELD_OUT))
    if len(held_out) > _MOST_COMPARED:
        held_out = np.sort(np.random.default_rng(0).choice(held_out, _MOST_COMPARED, replace=False))
    mean = sum(block.astype(np.float64).sum(axis=0) for _, block in _blocks(vectors)) / len(vectors)
    queries = unit(vectors.gather(held_out) - mean).astype(np.float32)
    best, cosine = np.full(len(held_out), -1), np.full(len(held_out), -np.inf)
    for first, block in _blocks(vectors):
        others = splits[first : first + len(block)]
        scores = queries @ unit(block - mean).astype(np.float32).T
        scores[(splits[held_out][:, None] == others) | (others == "none")] = -np.inf
        place = scores.argmax(axis=1)
        highest = scores[np.arange(len(scores)), place]
        better = highest > cosine
        best[better], cosine[better] = first + place[better], highest[better]
    near = np.flatnonzero(cosine >= LEAST)
    near = near[np.argsort(-cosine[near], kind="stable")]
    pairs = {(min(a, b), max(a, b)): c for a, b, c in zip(held_out[near], best[near], cosine[near], strict=True)}
    return [(int(a), int(b), float(c)) for (a, b), c in pairs.items()], len(held_out)


def _blocks(vectors: FeatureArray) -> Iterator[tuple[int, NDArray[np.floating]]]:
    return ((first, vectors[first : first + _BLOCK]) for first in range(0, len(vectors), _BLOCK))
