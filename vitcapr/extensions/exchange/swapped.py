"""Single rows that belong to another image, found by a second store of the same images.

A ridge predicts each row of one store from the other store, leaving this row out, and the other way round. Both
predictions resemble the row if the two stores have one image there; else many other rows resemble them more.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vitcapr.formats.manifest import Manifest
from vitcapr.store.reader import FeatureArray, FeatureStore

Array = npt.NDArray[Any]
LEAST_ROWS = 200
_RIDGE, _BLOCK, _SHOWN = 0.01, 512, 10
_BEHIND = 0.05
"""Share of other rows that resemble the predictions more, from which on a row is named."""


class Resemblance(NamedTuple):
    """Resemblance of each row to its predictions.

    Attributes:
        own: (N,) the sum of the two cosines.
        behind: (N,) the share of other rows that resemble the prediction of this row more.
        best: (N,) the row that resembles it most.
    """

    own: Array
    behind: Array
    best: Array

    @property
    def odd(self) -> Array:
        """The rows to look at, the least alike first."""
        odd = np.flatnonzero(self.behind > _BEHIND)
        return odd[np.argsort(self.own[odd], kind="stable")]


def resemblance(first: Array, second: Array) -> Resemblance:
    """Compare the rows of two stores: (N, D) and (N, E)."""
    first, second = (rows - rows.mean(axis=0, dtype=np.float64) for rows in (first, second))
    predictions = _unit(_predicted(first, second)), _unit(_predicted(second, first))
    rows, others = _unit(first), _unit(second)
    parts = []
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        cosines = predictions[0][part] @ rows.T + others[part] @ predictions[1].T
        own = np.diagonal(cosines, start)
        parts.append((own, (cosines > own[:, None]).mean(axis=1), cosines.argmax(axis=1)))
    return Resemblance(*map(np.concatenate, zip(*parts, strict=True)))


def look_for_swapped(store: FeatureStore, other: FeatureStore, data: Manifest, say: Callable[[str], None]) -> None:
    """Name the single rows of a store that do not fit a second store, from another network or layer.

    Raises:
        UserError: a store is not of the rows of the data set.
    """
    for one in (store, other):
        one.check_rows(store.identity, data)
    second = _vectors(min(other.values(), key=lambda array: len(array.shape)))
    for name, array in store.items():
        if len(array) < LEAST_ROWS:
            say(f"'{name}' and the second store are not compared: fewer than {LEAST_ROWS} rows")
            continue
        compared = resemblance(_vectors(array), second)
        say(f"'{name}' and the second store: {len(compared.odd)} of {len(array)} rows resemble other images more")
        for row in compared.odd[:_SHOWN]:
            say(f"  '{store.ids[row]}' should resemble '{store.ids[compared.best[row]]}'")


def _predicted(targets: Array, inputs: Array) -> Array:
    """Return each row of centred targets, predicted by the other rows."""
    gram = inputs.T @ inputs
    gram[np.diag_indices_from(gram)] += max(_RIDGE * np.trace(gram) / len(gram), 1e-12)
    weights = np.linalg.solve(gram, inputs.T)
    hat = np.einsum("nd,dn->n", inputs, weights)[:, None] + 1 / len(inputs)
    return np.asarray((inputs @ (weights @ targets) - hat * targets) / (1 - hat))


def _vectors(array: FeatureArray) -> Array:
    blocks = (np.asarray(array[start : start + _BLOCK], np.float32) for start in range(0, len(array), _BLOCK))
    return np.concatenate([block.reshape(len(block), -1, block.shape[-1]).mean(axis=1) for block in blocks])


def _unit(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
