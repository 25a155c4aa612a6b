"""Beside the manifest of a data set of pairs: the pairs before cleaning, pools of queries, cleaning."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from vitcapr.errors import UserError
from vitcapr.files import write_json
from vitcapr.formats.containers import check_columns, read_arrays, read_parquet, slices, write_arrays, write_frame
from vitcapr.formats.records import reading

FORMAT = "vitcapr-pairs-1"
TABLE = "pairs.parquet"
PAIRS = pa.schema([("caption_id", pa.string()), ("raw", pa.string()), ("category", pa.string())])
"""A row a caption, in the order of ``captions.parquet``. ``raw``: the text before cleaning."""
_REMEDY = "set data.dataset: pairs, and run the data stage"

Rows = npt.NDArray[np.int32]


class Pools(NamedTuple):
    """Held-out queries and their candidates: rows of images.parquet and of captions.parquet, each increasing."""

    image_queries: Rows
    text_candidates: Rows
    text_queries: Rows
    image_candidates: Rows


def write_pair_table(path: Path, table: pd.DataFrame) -> None:
    """Write the columns of ``PAIRS``, and no other, of ``table``."""
    check_columns(table[PAIRS.names], PAIRS)
    write_frame(path, slices(table), PAIRS)


def read_pair_table(path: Path, caption_ids: Sequence[str]) -> pd.DataFrame:
    """Return the columns ``caption_id, raw, category``; ``caption_ids`` are those of the manifest, in its order."""
    with reading(path, "a table of pairs", _REMEDY):
        content = read_parquet(path)
        if not content.schema.equals(PAIRS):
            raise ValueError("its columns are not those of the format")
        table: pd.DataFrame = content.to_pandas(use_threads=False)
    if table["caption_id"].tolist() != list(caption_ids):
        raise UserError("the table of pairs belongs to another manifest", where=path, remedy=f"{_REMEDY} again")
    return table


def write_pools(path: Path, pools: Pools) -> None:
    """Write ``pools.npz``."""
    write_arrays(path, pools._asdict())


def read_pools(path: Path) -> Pools:
    pools = Pools(**read_arrays(path, dict.fromkeys(Pools._fields, np.integer), "a table of pools", _REMEDY))
    if not len(pools.image_queries):
        raise UserError("the data set has no queries set apart", where=path, remedy="set data.pairs.test_images")
    return pools


def write_cleaning(path: Path, removed: Mapping[str, Mapping[str, int]], *, cleaned: bool) -> None:
    """Write ``cleaning.json``: the counts of each language; none if the texts were not ``cleaned``."""
    write_json(path, {"cleaned": cleaned, "languages": removed})


def read_cleaning(path: Path) -> dict[str, dict[str, int]]:
    """Return the counts by language, as :attr:`vitcapr.text.cleaning.Cleaner.removed` names them."""
    with reading(path, "a record of cleaning", _REMEDY):
        languages: dict[str, dict[str, int]] = json.loads(path.read_bytes())["languages"]
        return languages
