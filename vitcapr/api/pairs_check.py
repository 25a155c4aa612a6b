"""Captions are compared with their references, and embeddings with each other, before they are scored.

Each check returns its verdict, and raises a UserError if one side belongs to other images.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from vitcapr import joints
from vitcapr.errors import UserError
from vitcapr.metrics.captions.chair import CATEGORIES, mentioned
from vitcapr.text.normalise import units_of

UNCHECKED = "content:unchecked"
"""Part of the protocol of a score whose pairs the user answers for."""
REMEDY = "correct the order, or, if the pairs are right, answer with --without-content-check (content_check=False)"
_CLEARLY_SHARED = 10.0
"""Strength of references against other references of their image at which right captions are above chance as well."""

_MOST_CAPTIONS, _ROUNDING = 50, 1e-4
"""Captions of one image, at most; and the distance of two rows of length 1 that are equal but for rounding."""

Similarity = Callable[[Sequence[str], np.ndarray, int], np.ndarray]
"""From n texts, the row of an image for each, and the first reference that counts, to (n,) shares of common words."""


def check_captions(captions: Mapping[str, str], references: Mapping[str, Sequence[str]], where: object) -> str:
    """Compare the words of each caption with those of its references, and with those of other images."""
    images = list(captions)
    rows = joints.sample_rows(len(images))
    known = [references[image] for image in images]
    similarity = shared_words(known)
    drawn = [captions[images[row]] for row in rows]
    several = np.array([row for row in rows if len(known[row]) > 1], np.int64)
    shared = 0.0
    if len(several) >= joints.LEAST_PAIRS:
        firsts = [known[row][0] for row in several]
        given = {joints.GIVEN: several}
        shared = joints.paired("", lambda order: similarity(firsts, order, 1), len(images), given, False).strength
    powered = shared >= _CLEARLY_SHARED and len(set(drawn)) >= min(len(drawn) / 2, joints.LEAST_PAIRS)
    orders = possible_orders(rows, images)
    joint = "captions and references"
    return stated(joints.paired(joint, lambda order: similarity(drawn, order, 0), len(images), orders, powered), where)


def check_instances(objects: Mapping[str, frozenset[str]], references: Mapping[str, Sequence[str]]) -> str:
    """Compare the objects of images with those that their references name."""
    images = [image for image in references if image in objects]
    names = sorted(CATEGORIES)
    there = np.array([[name in objects[image] for name in names] for image in images], np.float32)
    rows = joints.sample_rows(len(images))
    named = [set(mentioned(" ".join(references[images[row]]))) for row in rows]
    told = np.array([[name in each for name in names] for each in named], np.float32)
    told -= told.mean(axis=0)
    orders = possible_orders(rows, images)
    powered = len(rows) >= joints.LEAST_CAPTIONS
    return stated(
        joints.paired(
            "objects and references", lambda order: (told * there[order]).sum(axis=1), len(images), orders, powered
        ),
        "the instances",
    )


def check_embeddings(images: np.ndarray, texts: np.ndarray, image_of_text: np.ndarray) -> str:
    """Compare each text with its image, and with other images; a UserError if each image is repeated for its captions.

    Args:
        images, texts: (N, E) and (M, E), rows of length 1.
        image_of_text: (M,).
    """
    equal = _equal_rows(images)
    different, most = int(equal.max()) + 1, int(np.bincount(equal).max())
    if 1 < different <= len(images) / 2 and most <= _MOST_CAPTIONS:
        each = len(images) // different
        what = f"{len(images)} rows are {different} different images, and equal rows count as rivals"
        remedy = "give each image once, with --image-of-text"
        if np.array_equal(equal, equal[::each].repeat(each)[: len(equal)]):
            remedy = f"give each image once, images[::{each}], with --captions-per-image {each}"
        raise UserError(what, where="embeddings", remedy=f"{remedy}, or {REMEDY}")
    rows = joints.sample_rows(len(texts))
    given = image_of_text[rows]
    orders = possible_orders(given, [str(row) for row in range(len(images))])
    many = len(texts) // len(images)
    if many > 1 and np.array_equal(image_of_text, np.repeat(np.arange(len(images)), many)):
        name = f"text 1 of each image, text 2 of each image, ... (numpy.tile(range({len(images)}), {many}))"
        orders[name] = rows % len(images)

    def similarity(order: np.ndarray) -> np.ndarray:
        return np.asarray((texts[rows] * images[order]).sum(axis=1))

    verdict = joints.paired("embeddings", similarity, len(images), orders, powered=False)
    if verdict.outcome == "undecided" and verdict.rows >= joints.LEAST_PAIRS:
        powered = joints.one_space(images[given], texts[rows])
        verdict = joints.paired("embeddings", similarity, len(images), orders, powered)
    copies = f"; {len(images) - different} of {len(images)} image rows equal another" if different < len(images) else ""
    return stated(verdict, None) + copies


def _equal_rows(values: np.ndarray) -> np.ndarray:
    """Return the number of the group of equal rows of each row, but for rounding: (N,), from 0."""
    order = np.argsort(values @ np.random.default_rng(0).normal(size=values.shape[1]), kind="stable")
    apart = [np.linalg.norm(values[one] - values[other]) > _ROUNDING for one, other in pairwise(order)]
    groups = np.empty(len(values), np.int64)
    groups[order] = np.concatenate([[0], np.cumsum(apart, dtype=np.int64)])
    return groups


def possible_orders(given: np.ndarray, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the rows as they were given, and other orders of them that an error would give, by their names."""
    return {joints.GIVEN: given} | {name: order[given] for name, order in joints.row_orders(names).items()}


def shared_words(references: Sequence[Sequence[str]]) -> Similarity:
    """Return a function that compares texts with the references of an image, by words weighted by their rarity."""
    sample = joints.sample_rows(len(references), 2000)
    counts = Counter(word for row in sample for word in set(units_of(" ".join(references[row]))))

    def weight(words: set[str]) -> float:
        return sum(float(np.log((len(sample) + 1) / (counts[word] + 1))) for word in words)

    @cache
    def weighted(text: str) -> tuple[set[str], float]:
        words = set(units_of(text))
        return words, weight(words)

    def similarity(texts: Sequence[str], order: np.ndarray, first: int) -> np.ndarray:
        values = []
        for text, row in zip(texts, order.tolist(), strict=True):
            (words, size), (others, other_size) = weighted(text), weighted(" ".join(references[row][first:]))
            values.append(weight(words & others) / max((size * other_size) ** 0.5, 1e-9))
        return np.array(values)

    return similarity


def stated(verdict: joints.Verdict, where: object) -> str:
    """Return a verdict in words; one that is wrong is a UserError."""
    if verdict.outcome == "wrong":
        raise UserError(str(verdict), where=where, remedy=REMEDY)
    return str(verdict)
