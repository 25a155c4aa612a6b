"""Atomic writes, text and JSON files, and file digests."""

import errno
import glob
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self, TextIO

from vitcapr.errors import UserError


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Yield a temporary file beside ``path``; it is renamed to ``path`` when the block ends without an error.

    Raises:
        UserError: the disk is full, or the file would be too large; an earlier file at ``path`` is unchanged.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    except Exception as error:
        # safetensors raises an error of its own, with the system's words.
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            remedy = "raise the limit (ulimit -f) and run the same command again"
            raise UserError("the file would be larger than files may be", where=path, remedy=remedy) from error
        if full or "No space left on device" in str(error):
            remedy = "free some space and run the same command again"
            raise UserError("no space left on the disk", where=path, remedy=remedy) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


def find_under(variable: str, name: str) -> Path:
    """Return a path: in the folder that an environment variable names, if it exists there, else as given."""
    root = os.environ.get(variable)
    there = Path(root).expanduser() / name if root else Path(name)
    return there if there.exists() else Path(name).expanduser()


def remove_remains(path: Path) -> None:
    """Remove the temporary files of killed processes that were to become ``path``. None may be at work."""
    for remains in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        remains.unlink(missing_ok=True)


def file_states(paths: Iterable[Path]) -> dict[Path, os.stat_result]:
    """Return the states of the regular files among ``paths``. What another process removes meanwhile is left out."""
    states = {}
    for path in paths:
        with suppress(FileNotFoundError):
            states[path] = path.stat()
    return {path: state for path, state in states.items() if stat.S_ISREG(state.st_mode)}


def read_untrusted(path: Path) -> bytes:
    """Return the content of a regular file.

    A link of an unpacked data set may lead to a device, which is read without end.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return stream.read()


def decode_text(content: bytes) -> str:
    """UTF-8, or UTF-16 as Windows writes it, without its byte order mark; a UnicodeDecodeError if it is neither."""
    return content.decode(json.detect_encoding(content))


def read_text(path: Path) -> str:
    """Return the text of a file that a user wrote, as :func:`decode_text` reads it."""
    return decode_text(path.read_bytes())


def open_text(path: Path) -> TextIO:
    """Return the same for a file that is too large for the memory. The line ends stay as they are."""
    with path.open("rb") as stream:
        encoding = json.detect_encoding(stream.read(4))
    return path.open(encoding=encoding, newline="")


def write_bytes(path: Path, content: bytes | memoryview) -> None:
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write UTF-8. A file name need not be UTF-8: its odd bytes become escapes, which JSON reads as they were."""
    write_bytes(path, content.encode("utf-8", "backslashreplace"))


def canonical_json(value: Any) -> str:
    """Canonical JSON: sorted keys, no spaces, UTF-8 characters unescaped."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def readable_json(value: Any) -> str:
    """Deterministic JSON for a file: sorted keys, two-space indent, a final newline."""
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def write_json(path: Path, value: Any) -> None:
    write_text(path, readable_json(value))


def parse_json(text: str) -> Any:
    """JSON, or a ValueError or RecursionError. NaN and Infinity, which JSON lacks, are missing values."""
    return json.loads(text, parse_constant=lambda _: None)


def read_field(entry: Any, name: str, *kinds: type) -> Any:
    """Return a field of an entry of a user's JSON file; a TypeError if the entry has no such field of these types."""
    if not isinstance(entry, dict):
        raise TypeError(f"not a JSON object: {entry!r:.40}")
    if name not in entry:
        raise TypeError(f"it has no '{name}'")
    if type(entry[name]) not in kinds:
        raise TypeError(f"'{name}' is {entry[name]!r:.40}, not of type {' or '.join(kind.__name__ for kind in kinds)}")
    return entry[name]


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        UserError: the file is missing, cannot be read, or is not JSON.
    """
    try:
        return parse_json(read_text(path))
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy="run the stage that makes it") from error
    except OSError as error:
        raise UserError(f"the file cannot be read: {error.strerror}", where=path) from error
    except (ValueError, RecursionError) as error:
        remedy = "correct it, or compare its size with the original's"
        raise UserError(f"not a JSON file: {error}", where=path, remedy=remedy) from error


def sha256_bytes(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()


def sha256_file(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


class DigestedFile(NamedTuple):
    """Known facts of a file at ``path``, which may not exist yet.

    Attributes:
        size: in bytes.
        sha256: in hexadecimal digits.
    """

    path: Path
    size: int
    sha256: str

    @classmethod
    def at(cls, path: Path) -> Self:
        return cls(path, path.stat().st_size, sha256_file(path))

    def problem(self, content: bool = True) -> str | None:
        """Describe the fault of the file; None if it is sound. Without ``content``, only its size is looked at."""
        if not self.path.is_file():
            return "is missing"
        if self.path.stat().st_size != self.size:
            return f"has {self.path.stat().st_size} bytes instead of {self.size}"
        sound = not content or sha256_file(self.path) == self.sha256
        return None if sound else "is damaged: its content is not what was sealed"
