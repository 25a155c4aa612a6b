"""Images that a data set holds twice: one image under two ids, and nearly equal images in two splits."""

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitcapr.formats.containers import slices
from vitcapr.formats.manifest import Manifest
from vitcapr.store.reader import FeatureArray
from vitcapr.studies.audit.captions import HELD_OUT

EQUAL, NEAR = "one image under two ids", "nearly equal across splits"
_BLOCK = 8192
_MOST_COMPARED = 20_000
"""Held-out images that are compared with all others; of more, so many are drawn at random."""
Pairs = list[tuple[int, int, float]]
"""Rows of two images, and the cosine of their vectors."""


def image_leaks(data: Manifest, vectors: FeatureArray, near: float) -> tuple[pd.DataFrame, int]:
    """A row for each pair of images: ``leak, first, second, cosine, first_split, second_split``; and the number of
    held-out images that were compared with those of other splits."""
    equal = equal_images(data.image_table.column("sha256"), vectors)
    similar, compared = nearly_equal(data.image_table.column("split").to_numpy(str), vectors, near)
    known = {pair[:2] for pair in equal}
    pairs = [(EQUAL, *pair) for pair in equal] + [(NEAR, *pair) for pair in similar if pair[:2] not in known]
    leaks = pd.DataFrame(pairs, columns=["leak", "first", "second", "cosine"])
    for end in ("first", "second"):
        for name, column in ((f"{end}_split", "split"), (end, "image_id")):
            leaks[name] = data.image_table.column(column).iloc[leaks[end].astype(int)].to_numpy()
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


def nearly_equal(splits: NDArray[np.str_], vectors: FeatureArray, least: float) -> tuple[Pairs, int]:
    """For each held-out image, the image of another split that is most like it, if their cosine is at least ``least``.

    Vectors are compared about their mean, as networks give all images a large common part.

    Returns:
        The pairs, the most similar first, and the number of held-out images that were compared.
    """
    held_out = np.flatnonzero(np.isin(splits, HELD_OUT))
    if len(held_out) > _MOST_COMPARED:
        held_out = np.sort(np.random.default_rng(0).choice(held_out, _MOST_COMPARED, replace=False))
    mean = sum(block.astype(np.float64).sum(axis=0) for _, block in _blocks(vectors)) / len(vectors)
    queries = _unit(vectors.gather(held_out), mean)
    best, cosine = np.full(len(held_out), -1), np.full(len(held_out), -np.inf)
    for first, block in _blocks(vectors):
        others = splits[first : first + len(block)]
        scores = queries @ _unit(block, mean).T
        scores[(splits[held_out][:, None] == others) | (others == "none")] = -np.inf
        place = scores.argmax(axis=1)
        highest = scores[np.arange(len(scores)), place]
        better = highest > cosine
        best[better], cosine[better] = first + place[better], highest[better]
    near = np.flatnonzero(cosine >= least)
    near = near[np.argsort(-cosine[near], kind="stable")]
    pairs = {(min(a, b), max(a, b)): c for a, b, c in zip(held_out[near], best[near], cosine[near], strict=True)}
    return [(int(a), int(b), float(c)) for (a, b), c in pairs.items()], len(held_out)


def _blocks(vectors: FeatureArray) -> Iterator[tuple[int, NDArray[np.floating]]]:
    return ((first, vectors[first : first + _BLOCK]) for first in range(0, len(vectors), _BLOCK))


def _unit(rows: NDArray[np.floating], mean: NDArray[np.float64]) -> NDArray[np.float32]:
    centred = (rows - mean).astype(np.float32)
    return np.asarray(centred / np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-12))
