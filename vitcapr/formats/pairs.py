"""Beside the manifest of a data set of pairs: the pairs before cleaning, pools of queries, cleaning, claims."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from vitcapr.errors import UserError
from vitcapr.files import write_json
from vitcapr.formats.containers import read_arrays, read_frame, read_record, to_arrow, write_arrays, write_table

FORMAT = "vitcapr-pairs-1"
TABLE = "pairs.parquet"
PAIRS = pa.schema([("caption_id", pa.string()), ("raw", pa.string()), ("category", pa.string())])
"""A row a caption, in the order of ``captions.parquet``. ``raw``: the text before cleaning."""


def write_pair_table(path: Path, table: pd.DataFrame) -> None:
    """Write the columns of ``PAIRS``, and no other, of ``table``."""
    write_table(path, to_arrow(table[PAIRS.names], PAIRS))


def read_pair_table(path: Path, caption_ids: Sequence[str]) -> pd.DataFrame:
    """The columns ``caption_id, raw, category``.

    Args:
        caption_ids: those of the manifest, in its order.

    Raises:
        UserError: the file is missing, is not such a table, or belongs to another manifest.
    """
    remedy = "set data.dataset: pairs, and run the data stage"
    table = read_frame(path, PAIRS, "a table of pairs", remedy)
    if table["caption_id"].tolist() != list(caption_ids):
        raise UserError("the table of pairs belongs to another manifest", where=path, remedy=f"{remedy} again")
    return table


def write_pair_card(path: Path, content: Mapping[str, Any]) -> None:
    """How the pairs were split, for people."""
    write_json(path, {"format": FORMAT, **content})


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


def write_cleaning(path: Path, removed: Mapping[str, Mapping[str, int]], *, cleaned: bool) -> None:
    """Write the counts of each language; none if the texts were not ``cleaned``."""
    write_json(path, {"cleaned": cleaned, "languages": removed})


def read_cleaning(path: Path) -> dict[str, dict[str, int]]:
    """The counts by language, as :class:`vitcapr.text.cleaning.Removed` names them.

    Raises:
        UserError: the file is missing or is no such record.
    """
    content = read_record(path, _CLEANING, "a record of cleaning", "set data.dataset: pairs, and run the data stage")
    return {language: counts.model_dump() for language, counts in content.languages.items()}


_Count = Annotated[int, Field(ge=0)]


class _Counts(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    captions: _Count
    emptied: _Count
    characters: _Count
    kept: _Count
    symbols: _Count
    spaces: _Count
    fillers: _Count
    title_marks: _Count


class _Cleaning(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    cleaned: bool
    languages: dict[str, _Counts]


_CLEANING = TypeAdapter(_Cleaning)


CLAIMS_FORMAT = "vitcapr-claims-1"


def write_claims(path: Path, claims: Iterable[Mapping[str, Any]]) -> None:
    """Write the fields of each :class:`vitcapr.data.pairs.claims.Claim`."""
    write_json(path, {"format": CLAIMS_FORMAT, "claims": list(claims)})
