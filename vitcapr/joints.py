"""Do these rows belong together? The content of both sides decides, not their names.

Four joints: features and photographs, patches and places, captions and photographs, and pairs that a score compares
(results and references, embeddings and embeddings). Each has a statistic in closed form for the arrangement that was
given and for others that happen in practice, and its distribution where nothing belongs together. Strengths (z) are
standard deviations of that distribution; benchmarks/joints.py measures how often the verdicts are right.

- Rows that a linear map relates (features, photographs, bags of words) are compared by the kernel of leave-one-out
  ridge: ``sum_ij A_ij G_ij``, where A predicts row i from the others by one side (hat matrix without its diagonal,
  over 1 - h_i) and G are the cosines of the other side. Rows of G are permuted for the distribution.
- Patches less the mean of their image and of their place predict the colour of the place, by ridge on half of the
  images; the cosine in each image of the other half is its score.
- Pairs are compared by their own similarity less that with other rows.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from vitcapr.text.normalise import units_of

Array = npt.NDArray[Any]
Orders = Mapping[str, Array]
"""Name of an arrangement -> the row of the second side for each row of the first one, -1 for none."""

SAMPLE = 256
"""Rows that are compared."""
IMAGES_OF_PATCHES = 48
THUMBNAIL = 32
GIVEN = "as given"
CHANCE, CLEAR, BETTER = 4.0, 6.0, 5.0
"""Below the first strength rows are at chance; another arrangement fits with the second one, better by the third."""
LEAST_ROWS, LEAST_CAPTIONS = 150, 200
"""Right rows are clearly above chance from here on, so that rows at chance are wrong; fewer leave it undecided."""
LEAST_PAIRS, LEAST_IMAGES, FEWEST_IMAGES = 50, 32, 16
_PERMUTATIONS = 99
_MOST_SORTED = 200_000
_RIDGE = 10.0
_PATCH_WIDTH = 1024


@dataclass(frozen=True)
class Verdict:
    """Verdict of the content on a joint.

    Attributes:
        joint: what was compared, such as "features and photographs".
        outcome: ``belongs``, ``wrong`` or ``undecided``.
        rows: of the sample.
        strength: of the arrangement that was given.
        reason: the finding, in words.
        fits: the other arrangement that the content fits, or nothing.
    """

    joint: str
    outcome: Literal["belongs", "wrong", "undecided"]
    rows: int
    strength: float
    reason: str
    fits: str = ""

    def __str__(self) -> str:
        start = {"belongs": "belong together", "wrong": "do not belong together", "undecided": "are not decided"}
        return f"{self.joint} {start[self.outcome]}, by {self.rows} rows: {self.reason}"


def related(
    joint: str,
    first: Array,
    second: Any,
    rows: Array,
    orders: Orders,
    powered: bool,
    predict_first: bool = False,
) -> Verdict:
    """Compare rows of which a linear map relates the two sides.

    Args:
        first: (n, D1) the first side of the sampled rows.
        second: (N, D2) or (N, P, D2), anything that takes an array of rows; patches are averaged.
        rows: (n,) the sampled rows.
        orders: (N,) each; the rows of ``second`` in other arrangements.
        powered: right rows would be above chance, so that rows at chance are wrong.
        predict_first: the first side is predicted from the second one: words are sparse, and predict little.
    """
    vectors = {name: _vectors(second, order[rows]) for name, order in {GIVEN: np.arange(len(second)), **orders}.items()}
    if _constant(first) or _constant(vectors[GIVEN]):
        return Verdict(joint, "undecided", len(rows), 0.0, "one side is the same in every row")
    strengths = {}
    for name, values in vectors.items():
        known = orders[name][rows] >= 0 if name in orders else np.ones(len(rows), bool)
        sides = (values[known], first[known]) if predict_first else (first[known], values[known])
        strengths[name] = _relation(*sides) if known.sum() >= LEAST_PAIRS // 2 else 0.0
    return _decide(joint, strengths, len(rows), powered)


def paired(joint: str, similarity: Callable[[Array], Array], items: int, orders: Orders, powered: bool) -> Verdict:
    """Compare pairs that have a similarity of their own.

    Args:
        similarity: of each of the n queries with the item in a row, (n,) -> (n,).
        items: number of items.
        orders: (n,) each, the item of every query; one is as :data:`GIVEN`.
        powered: right pairs would be above chance, so that pairs at chance are wrong.
    """
    given, drawn = orders[GIVEN], np.random.default_rng(0)
    chance = np.mean([similarity(drawn.integers(0, items, len(given))) for _ in range(16)], axis=0)
    gains = {name: similarity(order) - chance for name, order in orders.items()}
    strengths = {name: _standard_errors(gain) for name, gain in gains.items()}
    if len(given) < LEAST_PAIRS or all(gain.std() < 1e-9 for gain in gains.values()):
        reason = f"fewer than {LEAST_PAIRS}" if len(given) < LEAST_PAIRS else "every pair has the same similarity"
        return Verdict(joint, "undecided", len(given), strengths[GIVEN], reason)
    return _decide(joint, strengths, len(given), powered)


def places(
    joint: str, patches: Array, colours: Sequence[Callable[[int, int], Array]], grid: tuple[int, int], powered: bool
) -> Verdict:
    """Compare patches with the colours of their places.

    Args:
        patches: (n, P, D).
        colours: for each way to crop, a function from rows and columns to the colours (n, rows, columns, 3).
        grid: rows and columns; (0, 0) if nobody knows.
        powered: the images belong to the patches, so that places at chance are wrong if the grid is known: regions
            that a detector draws have no grid.
    """
    if len(patches) < FEWEST_IMAGES:
        return Verdict(joint, "undecided", len(patches), 0.0, f"fewer than {FEWEST_IMAGES} images")
    scores = {}
    for name, (values, shape) in _readings(patches, grid).items():
        if values.shape[1] == shape[0] * shape[1] > 3 and not _constant(values.reshape(len(values), -1)):
            each = [_place_scores(values, colour(*shape)) for colour in colours]
            scores[name] = max(each, key=lambda score: float(score.mean()))
    strengths = {GIVEN: 0.0} | {name: _standard_errors(score) for name, score in scores.items()}
    powered = powered and grid != (0, 0) and GIVEN in scores and len(patches) >= LEAST_IMAGES
    return _decide(joint, strengths, len(patches), powered, unit="images")


def row_orders(ids: Sequence[str]) -> dict[str, Array]:
    """Return the arrangements of rows that happen in practice: shifted by one, reversed, sorted by name."""
    count = len(ids)
    rows = np.arange(count)
    orders = {
        "shifted by one": (rows + 1) % count,
        "shifted by one, the other way": (rows - 1) % count,
        "reversed": rows[::-1].copy(),
    }
    for name, key in (("sorted by name", str), ("sorted by number", _natural)) if count <= _MOST_SORTED else ():
        by_name = np.array(sorted(range(count), key=lambda row: key(ids[row])))
        orders[name] = np.argsort(by_name)
        orders[f"the given order, for rows {name}"] = by_name
    return {name: order for name, order in orders.items() if not np.array_equal(order, rows)}


def sample_rows(count: int, size: int = SAMPLE) -> Array:
    """Return rows drawn at random, always the same ones, increasing."""
    return np.sort(np.random.default_rng(0).choice(count, min(count, size), replace=False))


def photograph_inputs(thumbnails: Array) -> Array:
    """Return what is seen of photographs: colours of 16 x 16 places and edges of 8 x 8, in equal shares.

    Args:
        thumbnails: (n, 32, 32, 3) uint8.
    """
    pictures = thumbnails.astype(np.float32) / 255
    grey = pictures.mean(axis=3)
    edges = sum(np.abs(np.diff(grey, axis=axis, prepend=grey.take([0], axis))) for axis in (1, 2))
    return np.concatenate([_share(_pooled(pictures, 2)), _share(_pooled(np.asarray(edges), 4))], axis=1)


def bags_of_words(texts: Sequence[str]) -> Array:
    """Return the words of each text, weighted by their rarity: (n, V) float32, rows of length 1 or 0.

    A word that no other text has counts nothing.
    """
    sets = [set(units_of(text)) for text in texts]
    counts = Counter(word for words in sets for word in words)
    columns = {word: column for column, word in enumerate(word for word, count in counts.items() if count > 1)}
    bags = np.zeros((len(texts), max(len(columns), 1)), np.float32)
    for row, words in enumerate(sets):
        for word in words & columns.keys():
            bags[row, columns[word]] = np.log(len(texts) / counts[word])
    return _unit(bags)


def colours_of(thumbnails: Array) -> Callable[[int, int], Array]:
    """Return a function that averages thumbnails (n, S, S, 3) over a grid: (n, rows, columns, 3)."""

    def colour(rows: int, columns: int) -> Array:
        down, across = _areas(rows, thumbnails.shape[1]), _areas(columns, thumbnails.shape[2])
        means = np.einsum("rh,nhwc,kw->nrkc", down, thumbnails.astype(np.float32) / 255, across, optimize=True)
        return np.asarray(means)

    return colour


def equal_runs(values: Array) -> int:
    """Return the length of the runs of equal rows, if all rows come in runs of one length of two or more; else 1.

    An array with a row for each caption repeats the row of an image in this way.
    """
    flat = values.reshape(len(values), -1)
    starts = np.flatnonzero(np.r_[True, (flat[1:] != flat[:-1]).any(axis=1), True])
    lengths = set(np.diff(starts).tolist())
    return lengths.pop() if len(lengths) == 1 and len(starts) > 2 else 1


def one_space(first: Array, second: Array) -> bool:
    """Return whether two sets of vectors of one width lie in one space, whichever rows belong together.

    The nearest neighbours on the other side are nearer than after random rotations. Rows (n, D), (m, D).
    """
    one, other = _unit(first - first.mean(axis=0)), _unit(second - second.mean(axis=0))
    drawn = np.random.default_rng(0)

    def nearest(vectors: Array) -> float:
        return float((one @ vectors.T).max(axis=1).mean())

    turned = [nearest(other @ np.linalg.qr(drawn.normal(size=(one.shape[1],) * 2))[0]) for _ in range(19)]
    return nearest(other) > max(turned) + 3 * float(np.std(turned))


def _decide(joint: str, strengths: Mapping[str, float], rows: int, powered: bool, unit: str = "rows") -> Verdict:
    own, others = strengths[GIVEN], {name: value for name, value in strengths.items() if name != GIVEN}
    best = max(others, key=lambda name: others[name], default=GIVEN)
    stated = f"as given z = {own:.1f}"
    if best != GIVEN and others[best] >= CLEAR and others[best] - own >= max(BETTER, 0.25 * others[best]):
        reason = f"{stated}, {best} z = {others[best]:.1f}; they fit {best}"
        return Verdict(joint, "wrong", rows, own, reason, best)
    if own >= CHANCE:
        return Verdict(joint, "belongs", rows, own, stated)
    if powered:
        tried = f"nor in any of {len(others)} other arrangements" if others else "and no other arrangement was tried"
        return Verdict(joint, "wrong", rows, own, f"{stated}, no better than chance, {tried}")
    return Verdict(joint, "undecided", rows, own, f"{stated}, and too few {unit} or too little in them to tell")


def _relation(first: Array, second: Array) -> float:
    values = np.asarray(first, np.float64) - np.mean(first, axis=0, dtype=np.float64)
    kernel = values @ values.T
    kernel /= max(np.trace(kernel) / len(kernel), 1e-12)
    weights, vectors = np.linalg.eigh(kernel)
    weights = np.maximum(weights, 0)
    hat = (vectors * (weights / (weights + _RIDGE))) @ vectors.T + 1 / len(kernel)
    predicted = hat / (1 - np.diag(hat))[:, None]
    np.fill_diagonal(predicted, 0)
    unit = _unit(second - second.mean(axis=0, dtype=np.float64))
    cosines = unit @ unit.T
    drawn = np.random.default_rng(0)
    chance = []
    for _ in range(_PERMUTATIONS):
        order = drawn.permutation(len(cosines))
        chance.append(np.vdot(predicted, cosines[np.ix_(order, order)]) - np.vdot(np.diag(cosines), np.diag(predicted)))
    return float((np.vdot(predicted, cosines) - np.mean(chance)) / max(float(np.std(chance)), 1e-12))


def _place_scores(patches: Array, colours: Array) -> Array:
    """Return the score of each image, by the other half of the images: (n,)."""
    values = np.asarray(patches[..., :_PATCH_WIDTH], np.float64)
    targets = np.asarray(colours, np.float64).reshape(len(patches), -1, 3)
    centred = []
    for part in (values, targets):
        part = part - part.mean(axis=1, keepdims=True)
        centred.append(part - part.mean(axis=0))
    values, targets = centred
    values /= max(float(values.std()), 1e-12)
    scores = np.zeros(len(values))
    for half in (0, 1):
        train, test = np.arange(len(values)) % 2 == half, np.arange(len(values)) % 2 != half
        known = values[train].reshape(-1, values.shape[2])
        ridge = known.T @ known + 0.03 * len(known) * np.eye(known.shape[1])
        predicted = values[test] @ np.linalg.solve(ridge, known.T @ targets[train].reshape(-1, 3))
        norms = np.linalg.norm(predicted, axis=(1, 2)) * np.linalg.norm(targets[test], axis=(1, 2))
        scores[test] = (predicted * targets[test]).sum(axis=(1, 2)) / np.maximum(norms, 1e-12)
    return scores


def _readings(patches: Array, grid: tuple[int, int]) -> dict[str, tuple[Array, tuple[int, int]]]:
    """Return the ways in which the tokens of an image may be its places, and the grid of each."""
    images, count, width = patches.shape
    own = grid if grid != (0, 0) else _square(count)
    readings = {GIVEN: (patches, own)}
    if own != (0, 0):
        cells = patches.reshape(images, *own, width)
        turned = patches.reshape(images, own[1], own[0], width).swapaxes(1, 2)
        readings |= {
            "the transposed grid": (turned.reshape(patches.shape), own),
            "the grid mirrored from left to right": (cells[:, :, ::-1].reshape(patches.shape), own),
            "the grid upside down": (cells[:, ::-1].reshape(patches.shape), own),
            "tokens shifted by one": (np.roll(patches, -1, axis=1), own),
            "tokens shifted by one, the other way": (np.roll(patches, 1, axis=1), own),
        }
        if grid != (0, 0) and (maps := patches.reshape(images, grid[0], -1)).shape[2] == grid[1] * width:
            readings["channels first"] = (maps.swapaxes(1, 2), (grid[1], width))
    elif (rest := _square(count - 1)) != (0, 0):
        readings["the first token dropped"] = (patches[:, 1:], rest)
    if (square := _square(width)) != (0, 0):
        readings.setdefault("channels first", (patches.swapaxes(1, 2), square))
    return readings


def _square(count: int) -> tuple[int, int]:
    side = round(count**0.5)
    return (side, side) if side > 1 and side * side == count else (0, 0)


def _vectors(second: Any, rows: Array) -> Array:
    values = np.nan_to_num(np.asarray(second[np.maximum(rows, 0)]))
    values = values.reshape(len(values), -1, values.shape[-1]) if values.ndim > 2 else values
    return np.asarray(values.mean(axis=1, dtype=np.float32) if values.ndim > 2 else values, np.float32)


def _standard_errors(gain: Array) -> float:
    return float(gain.mean() / max(float(gain.std()) / len(gain) ** 0.5, 1e-9))


def _constant(values: Array) -> bool:
    return bool(np.ptp(values, axis=0).max() <= 1e-6 * max(float(np.abs(values).max()), 1e-12))


def _unit(values: Array) -> Array:
    return np.asarray(values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12))


def _share(values: Array) -> Array:
    centred = values.reshape(len(values), -1) - values.reshape(len(values), -1).mean(axis=0)
    return np.asarray(centred / max(float(np.sqrt((centred**2).sum(axis=1).mean())), 1e-6))


def _pooled(values: Array, side: int) -> Array:
    rows, columns = values.shape[1] // side, values.shape[2] // side
    return np.asarray(values.reshape(len(values), rows, side, columns, side, *values.shape[3:]).mean(axis=(2, 4)))


def _areas(parts: int, pixels: int) -> Array:
    """Return the share of each pixel in the mean of each part: (parts, pixels)."""
    edges = np.arange(parts + 1) * pixels / parts
    inside = np.clip(edges[1:, None] - np.arange(pixels), 0, 1) - np.clip(edges[:-1, None] - np.arange(pixels), 0, 1)
    return np.asarray(inside / inside.sum(axis=1, keepdims=True), np.float32)


def _natural(name: str) -> list[tuple[bool, int, str]]:
    parts = "".join(sign if sign.isdecimal() else f" {sign} " for sign in name).split()
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]
