"""``audit.parquet``: how suspicious each caption of a data set is, and the captions that a threshold leaves out."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyarrow as pa

from vitcapr.errors import UserError
from vitcapr.formats.containers import read_parquet, write_frame
from vitcapr.formats.records import reading

AUDIT = pa.schema(
    {
        **dict.fromkeys(("caption_id", "image_id", "split"), pa.string()),
        "suspicion": pa.float32(),
        "rank": pa.int32(),
        **dict.fromkeys(("p", "wrong"), pa.float32()),
        **dict.fromkeys(("better_image", "better_caption", "odd"), pa.string()),
    }
)
"""A row a caption, in the order of ``captions.parquet``. Ids are empty where nothing fits better."""


def write_audit(path: Path, parts: Iterable[pd.DataFrame]) -> None:
    write_frame(path, parts, AUDIT)


def read_marks(path: Path) -> pd.DataFrame:
    """Return ``caption_id`` and ``wrong`` of an audit, or of the marks that its page exports as CSV."""
    if path.suffix != ".csv":
        return read_audit(path)
    remedy = "export the marks of an audit's page"
    with reading(path, "marks of captions", remedy):
        table = pd.read_csv(path, dtype={"caption_id": str, "wrong": float}, keep_default_na=False)
        if list(table.columns) != ["caption_id", "wrong"]:
            raise UserError("its columns should be caption_id,wrong", where=path, remedy=remedy)
        return table


def read_audit(path: Path) -> pd.DataFrame:
    remedy = "give audit.parquet of vitcapr pairs audit"
    with reading(path, "an audit of captions", remedy):
        content = read_parquet(path)
        if missing := {"caption_id", "image_id", "suspicion", "wrong"} - set(content.column_names):
            raise UserError(f"an audit has the column {min(missing)}", where=path, remedy=remedy)
        table: pd.DataFrame = content.to_pandas(use_threads=False)
        return table
