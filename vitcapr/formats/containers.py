"""JSON, NumPy and Parquet files: whole or absent when written, and one line for the user where reading fails."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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


@contextmanager
def reading(path: Path, what: str, remedy: str) -> Iterator[None]:
    """Around everything that reads and checks a file: any error becomes one line for the user.

    Libraries raise almost anything at a file that is damaged or of another format.

    Args:
        what: that the file should be, as in "a table of ranks".
        remedy: how to make it, as in "run the embed stage".

    Raises:
        UserError: the block raised an error.
    """
    try:
        yield
    except UserError:
        raise
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy=remedy) from error
    except MemoryError as error:
        more = "raise the limit of the memory (ulimit -v) and run the same command again"
        raise UserError("not enough memory to read the file", where=path, remedy=more) from error
    except Exception as error:
        raise UserError(f"not {what}: {_reason(error)}", where=path, remedy=f"{remedy} again") from error


def _reason(error: Exception) -> str:
    """The first thing that is wrong; with its place, where pydantic says it."""
    if not isinstance(error, ValidationError):
        return f"it has no {error}" if isinstance(error, KeyError) else str(error)[:300]
    first = error.errors(include_url=False, include_input=False)[0]
    place, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
    return f"{place}: {reason}" if place else reason


def read_record(path: Path, kind: TypeAdapter[Content], what: str, remedy: str) -> Content:
    """The content of a JSON file of a type.

    Raises:
        UserError: see :func:`reading`.
    """
    with reading(path, what, remedy):
        return kind.validate_json(read_file(path))


def read_format(path: Path, form: str, what: str, remedy: str) -> dict[str, Any]:
    """The content of a JSON file that a stage wrote, if its ``format`` is ``form``.

    Raises:
        UserError: see :func:`reading`.
    """
    with reading(path, f"{what} of format {form}", remedy):
        content: dict[str, Any] = json.loads(read_file(path))
        if content["format"] != form:
            raise ValueError(f"its format is {content['format']}")
        return content


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
        content = read_format(path, cls.FORMAT, cls.KIND, cls.REMEDY)
        with reading(path, f"{cls.KIND} of format {cls.FORMAT}", cls.REMEDY):
            return TypeAdapter(cls).validate_json(json.dumps({k: v for k, v in content.items() if k != "format"}))


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write named arrays to one ``.npz`` file. The same arrays give the same bytes."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def read_arrays(path: Path, kinds: Mapping[str, type], what: str, remedy: str) -> dict[str, NDArray[Any]]:
    """The arrays of these names from a ``.npz`` file; never unpickled.

    Args:
        kinds: the NumPy type of each array by its name; an abstract one, such as ``np.integer``, admits all below it.

    Raises:
        UserError: see :func:`reading`; or an array is missing or of another type.
    """
    with reading(path, what, remedy):
        check_is_file(path)
        with np.load(path, allow_pickle=False) as content:
            arrays = {name: content[name] for name in kinds}
        for name, kind in kinds.items():
            _check_type(name, arrays[name], kind)
        return arrays


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write one array, as a ``.npy`` file."""
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        np.save(stream, array, allow_pickle=False)


def read_array(path: Path, kind: type, what: str, remedy: str) -> NDArray[Any]:
    """The array of a ``.npy`` file; the arguments are those of :func:`read_arrays`.

    Raises:
        UserError: see :func:`reading`; or the array is of another type.
    """
    with reading(path, what, remedy), path.open("rb") as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
        _check_type("the array", array, kind)
        return array


def _check_type(name: str, array: NDArray[Any], kind: type) -> None:
    if not np.issubdtype(array.dtype, kind):
        raise ValueError(f"{name} is of type {array.dtype}, not {kind.__name__}")


def read_parquet(path: Path) -> "pa.Table":
    """The whole table, read in this thread alone: threads of pyarrow that cannot start, as under a limit of the address
    space, are waited for for ever.

    Raises:
        FileNotFoundError: there is no such file.
        OSError, pyarrow.ArrowException: it is not a whole Parquet file.
        MemoryError: the memory does not suffice.
    """
    check_is_file(path)
    with pq.ParquetFile(path, pre_buffer=False) as table:
        return table.read(use_threads=False)


def read_frame(path: Path, schema: "pa.Schema", what: str, remedy: str) -> pd.DataFrame:
    """The table of a Parquet file with exactly the columns of ``schema``.

    Raises:
        UserError: see :func:`reading`; or the file has other columns.
    """
    with reading(path, what, remedy):
        table = read_parquet(path)
        if not table.schema.equals(schema):
            raise ValueError("its columns are not those of the format")
        frame: pd.DataFrame = table.to_pandas(use_threads=False)
        return frame


def to_arrow(frame: pd.DataFrame, schema: "pa.Schema") -> "pa.Table":
    """``frame`` in exactly the columns of ``schema``, without the pandas version in its metadata.

    Raises:
        ValueError: a column is missing, has empty cells, or is not in the schema.
    """
    if set(schema.names) != set(frame.columns):
        raise ValueError(f"the columns are {list(frame.columns)}, not {schema.names}")
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
