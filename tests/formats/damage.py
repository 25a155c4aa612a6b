"""A reader against every file that is none of its own: what it says is one line, and never a traceback."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vitcapr.errors import UserError

FOREIGN = (
    b"",
    b"\x00\xff\xfe",
    b"[]",
    b"null",
    b'"x"',
    b"3",
    b"{}",
    b"PK\x03\x04 nothing",
    b"PAR1 nothing",
    b"a,b\n1,2\n",
)


def refuses_foreign_files(read: Callable[[Path], Any], path: Path, empty: bytes | None = None) -> None:
    """Check that ``read`` refuses a missing file, a folder, files of other kinds, and ``path`` cut short anywhere.

    Args:
        path: a whole file of the reader's format.
        empty: content that the format admits.
    """
    content = path.read_bytes()
    assert read(path) is not None
    for part in (content[: len(content) * number // 8] for number in range(1, 8)):
        _refuses(read, path, part)
    for other in (other for other in FOREIGN if other != empty):
        _refuses(read, path, other)
    path.unlink()
    with pytest.raises(UserError, match="no such file"):
        read(path)
    path.mkdir()
    with pytest.raises(UserError) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def _refuses(read: Callable[[Path], Any], path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert caught.value.remedy
