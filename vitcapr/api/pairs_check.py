"""Captions are compared with their references, and embeddings with each other, before they are scored."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from vitcapr import joints
from vitcapr.errors import UserError
from vitcapr.text.normalise import units_of

UNCHECKED = "content:unchecked"
"""Part of the protocol of a score whose pairs the user answers for."""
REMEDY = "correct the order, or, if the pairs are right, answer with --without-content-check (content_check=False)"
_CLEARLY_SHARED = 10.0
"""Strength of references with other references of their image, from which right captions are above chance, too."""


def check_captions(captions: Mapping[str, str], references: Mapping[str, Sequence[str]], where: object) -> str:
    """Compare the words of each caption with those of its references, and with those of other images.

    Returns:
        The verdict.

    Raises:
        UserError: the captions belong to other images.
    """
    images = list(captions)
    rows = joints.sample_rows(len(images))
    known = [set(units_of(" ".join(references[images[row]]))) for row in joints.sample_rows(len(images), 2000)]
    counts = Counter(word for words in known for word in words)

    def weight(words: set[str]) -> float:
        return sum(float(np.log((len(known) + 1) / (counts[word] + 1))) for word in words)

    @cache
    def of_references(row: int, first: int = 0) -> tuple[set[str], float]:
        words = set(units_of(" ".join(references[images[row]][first:])))
        return words, weight(words)

    def similarities(texts: Sequence[str], order: np.ndarray, first: int = 0) -> np.ndarray:
        values = []
        for text, row in zip(texts, order.tolist(), strict=True):
            words, (others, size) = set(units_of(text)), of_references(row, first)
            values.append(weight(words & others) / max((weight(words) * size) ** 0.5, 1e-9))
        return np.array(values)

    drawn = [captions[images[row]] for row in rows]
    several = np.array([row for row in rows if len(references[images[row]]) > 1], np.int64)
    shared = 0.0
    if len(several) >= joints.LEAST_PAIRS:
        firsts = [references[images[row]][0] for row in several]
        given = {joints.GIVEN: several}
        shared = joints.paired("", lambda order: similarities(firsts, order, 1), len(images), given, False).strength
    powered = shared >= _CLEARLY_SHARED and len(set(drawn)) >= len(drawn) / 2
    orders = {joints.GIVEN: rows} | {name: order[rows] for name, order in joints.row_orders(images).items()}
    return _state(
        joints.paired(
            "captions and references", lambda order: similarities(drawn, order), len(images), orders, powered
        ),
        where,
    )


def check_embeddings(images: np.ndarray, texts: np.ndarray, image_of_text: np.ndarray) -> str:
    """Compare each text with its image, and with other images; look for images that stand once for each caption.

    Args:
        images, texts: (N, E) and (M, E), rows of length 1.
        image_of_text: (M,).

    Returns:
        The verdict.

    Raises:
        UserError: the texts belong to other images, or every image is repeated.
    """
    if (each := joints.equal_runs(images)) > 1:
        what = f"each image stands in {each} equal rows, which count as rivals: {len(images)} rows"
        remedy = f"give each image once, images[::{each}], with --captions-per-image {each}, or {REMEDY}"
        raise UserError(what, where="embeddings", remedy=remedy)
    rows = joints.sample_rows(len(texts))
    names = [str(row) for row in range(len(images))]
    given = image_of_text[rows]
    orders = {joints.GIVEN: given} | {name: order[given] for name, order in joints.row_orders(names).items()}
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
    return _state(verdict, None)


def _state(verdict: joints.Verdict, where: object) -> str:
    if verdict.outcome == "wrong":
        raise UserError(str(verdict), where=where, remedy=REMEDY)
    return str(verdict)
