"""``pools.npz``: held-out queries and their candidates."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vitcapr.errors import UserError
from vitcapr.formats.arrays import read_arrays, write_arrays

Rows = npt.NDArray[np.int32]


class Pools(NamedTuple):
    """Rows of images.parquet and of captions.parquet, each increasing."""

    image_queries: Rows
    text_candidates: Rows
    text_queries: Rows
    image_candidates: Rows


def write_pools(path: Path, pools: Pools) -> None:
    write_arrays(path, pools._asdict())


def read_pools(path: Path) -> Pools:
    """Raises:
    UserError: the file is missing, is not a table of pools, or holds no queries.
    """
    what, remedy = "a table of pools", "set data.dataset: pairs, and run the data stage"
    arrays = read_arrays(path, dict.fromkeys(Pools._fields, np.integer), what, remedy)
    for name, rows in arrays.items():
        if rows.ndim != 1 or (rows < 0).any() or (np.diff(rows) <= 0).any():
            raise UserError(f"not {what}: {name} are not increasing rows", where=path, remedy=f"{remedy} again")
    pools = Pools(**arrays)
    if not len(pools.image_queries):
        raise UserError("the data set has no queries set apart", where=path, remedy="set data.pairs.test_images")
    return pools
