"""``per_image.parquet``: the caption of every image of a split, with its scores and their components."""

from pathlib import Path

import pandas as pd
import pyarrow as pa

from vitcapr.errors import UserError
from vitcapr.files import atomic_path
from vitcapr.formats.parquet import read_parquet

_TEXT = ("image_id", "caption", "tokens")


def write_per_image(path: Path, table: pd.DataFrame) -> None:
    """Write ``image_id``, ``caption``, ``tokens`` and a column for each score or its statistics."""
    with atomic_path(path) as temporary:
        table.to_parquet(temporary, index=False)


def read_per_image(path: Path) -> pd.DataFrame:
    """Raises:
    UserError: the file is missing or is not such a table.
    """
    what, remedy = "not a table of scores by image", "score the captions"
    try:
        table: pd.DataFrame = read_parquet(path).to_pandas(use_threads=False)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except (OSError, ValueError, pa.ArrowException) as error:
        raise UserError(what, where=path, remedy=f"{remedy} again") from error
    if missing := [name for name in _TEXT if name not in table.columns]:
        raise UserError(f"{what}: it has no column {missing[0]}", where=path, remedy=f"{remedy} again")
    if table["image_id"].duplicated().any() or table["image_id"].isna().any():
        raise UserError(f"{what}: an image occurs twice", where=path, remedy=f"{remedy} again")
    return table
