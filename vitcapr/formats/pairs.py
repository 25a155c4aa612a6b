"""``pairs.parquet`` and ``pairs.json`` beside the manifest of a data set of pairs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from vitcapr.errors import UserError
from vitcapr.files import write_json
from vitcapr.formats.parquet import read_frame, to_arrow, write_table

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
