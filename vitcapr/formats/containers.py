"""JSON, NumPy and Parquet files whose content is checked as they are read."""

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, ValidationError

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, check_is_file, read_file, write_json

Content = TypeVar("Content")


def read_record(path: Path, kind: TypeAdapter[Content], what: str, remedy: str) -> Content:
    """The content of a JSON file.

    Args:
        what: that the file should be, as in "a metrics file".
        remedy: how to make it, as in "score the captions".

    Raises:
        UserError: the file is missing, is not JSON, or its content is not of the type.
    """
    try:
        content = read_file(path)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except OSError as error:
        raise UserError(f"the file cannot be read: {error.strerror}", where=path, remedy=remedy) from error
    try:
        return kind.validate_json(content)
    except ValidationError as error:
        raise UserError(f"not {what}: {reason_of(error)}", where=path, remedy=f"{remedy} again") from error


@dataclass(frozen=True)
class JsonRecord:
    """A JSON file of one format. The fields of a subclass are those of the file."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    FORMAT: ClassVar[str]
    KIND: ClassVar[str]
    """What the file is, as in "a weight"."""
    REMEDY: ClassVar[str]
    """How to make it, as in "run the stage extract"."""

    def write(self, path: Path) -> None:
        write_json(path, {"format": self.FORMAT, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises:
        UserError: the file is missing or is not of this format.
        """
        what = f"{cls.KIND} of format {cls.FORMAT}"
        content = read_record(path, _JSON_OBJECT, what, cls.REMEDY)
        if content.pop("format", None) != cls.FORMAT:
            raise UserError(f"not {what}", where=path, remedy=f"{cls.REMEDY} again")
        try:
            return TypeAdapter(cls).validate_json(json.dumps(content))
        except ValidationError as error:
            raise UserError(f"not {what}: {reason_of(error)}", where=path, remedy=f"{cls.REMEDY} again") from error


_JSON_OBJECT = TypeAdapter(dict[str, Any])


def reason_of(error: ValidationError) -> str:
    """The first thing that is wrong, and its place in the file."""
    first = error.errors(include_url=False, include_input=False)[0]
    place, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    return f"{place}: {reason}" if place else reason


_DAMAGE = (
    OSError,
    KeyError,
    ValueError,
    TypeError,
    AttributeError,
    EOFError,
    NotImplementedError,
    SyntaxError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What NumPy raises at a file that is damaged or of another format."""


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """The same arrays give the same bytes."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def read_arrays(path: Path, kinds: Mapping[str, type], what: str, remedy: str) -> dict[str, NDArray[Any]]:
    """The arrays of these names.

    Args:
        kinds: the NumPy type of each array by its name; an abstract one, such as ``np.integer``, admits all below it.
        what: that the file should be, as in "a table of ranks".
        remedy: how to make it, as in "run the embed stage".

    Raises:
        UserError: the file is missing, damaged, holds objects, or lacks an array, or one is of another type.
    """
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in kinds}
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except _DAMAGE as error:
        raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
    for name, kind in kinds.items():
        if not np.issubdtype(arrays[name].dtype, kind):
            reason = f"{name} is of type {arrays[name].dtype}, not {kind.__name__}"
            raise UserError(f"not {what}: {reason}", where=path, remedy=f"{remedy} again")
    return arrays


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write one array, as a ``.npy`` file."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, array, allow_pickle=False)


def read_array(path: Path, kind: type, what: str, remedy: str) -> NDArray[Any]:
    """The array of a ``.npy`` file; the arguments are those of :func:`read_arrays`.

    Raises:
        UserError: the file is missing, damaged, holds objects, or the array is of another type.
    """
    try:
        with path.open("rb") as stream:
            array = np.lib.format.read_array(stream, allow_pickle=False)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except _DAMAGE as error:
        raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
    if not np.issubdtype(array.dtype, kind):
        raise UserError(f"not {what}: type {array.dtype}, not {kind.__name__}", where=path, remedy=f"{remedy} again")
    return array


def read_parquet(path: Path) -> "pa.Table":
    """The table, read in this thread alone.

    Threads of pyarrow that cannot start, as under a limit of the address space, are waited for for ever.

    Raises:
        FileNotFoundError: there is no such file.
        OSError, pyarrow.ArrowException: it is not a whole Parquet file.
        UserError: the memory does not suffice.
    """
    check_is_file(path)
    try:
        with pq.ParquetFile(path, pre_buffer=False) as table:
            return table.read(use_threads=False)
    except MemoryError as error:
        remedy = "raise the limit of the memory (ulimit -v) and run the same command again"
        raise UserError("not enough memory to read the table", where=path, remedy=remedy) from error


def read_frame(path: Path, schema: "pa.Schema", what: str, remedy: str) -> pd.DataFrame:
    """The table of a file with exactly the columns of ``schema``.

    Args:
        what: that the file should be, as in "a table of pairs".
        remedy: how to make it, as in "run the data stage".

    Raises:
        UserError: the file is missing, is not a whole Parquet file, or has other columns.
    """
    try:
        table = read_parquet(path)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"not {what}: not a whole Parquet file", where=path, remedy=f"{remedy} again") from error
    if not table.schema.equals(schema):
        raise UserError(f"not {what}: its columns are not those of the format", where=path, remedy=f"{remedy} again")
    frame: pd.DataFrame = table.to_pandas(use_threads=False)
    return frame


def to_arrow(frame: pd.DataFrame, schema: "pa.Schema") -> "pa.Table":
    """``frame`` in exactly the columns of ``schema``, without the pandas version in its metadata.

    Raises:
        ValueError: a column is missing, has empty cells, or is not in the schema.
    """
    if missing := [name for name in schema.names if name not in frame.columns]:
        raise ValueError(f"columns missing: {missing}")
    if extra := [name for name in frame.columns if name not in schema.names]:
        raise ValueError(f"columns that the format does not have: {extra}")
    for name in schema.names:
        if frame[name].isna().any():
            raise ValueError(f"column {name} has empty cells")
    arrays = [pa.array(frame[field.name].tolist(), type=field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_table(path: Path, table: "pa.Table") -> None:
    """The same table gives the same bytes."""
    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def frame_to_csv(frame: pd.DataFrame) -> str:
    """The values of a data frame with all their digits, without its index."""
    return frame.to_csv(index=False, lineterminator="\n")
