"""Files that stay inside tar archives, as WebDataset has them: found once, then read by any thread."""

import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

from vitcapr.data.archive import is_junk
from vitcapr.errors import UserError

SUFFIX = ".tar"


def split_path(path: str) -> tuple[str, str] | None:
    """``(a/b.tar, c/d.jpg)`` of ``a/b.tar/c/d.jpg``; None for a path that leads into no tar."""
    tar, inside, member = path.partition(f"{SUFFIX}/")
    return (f"{tar}{SUFFIX}", member) if inside and member else None


def members(file: Path) -> Iterator[tarfile.TarInfo]:
    """The regular files of a tar, in its order; hidden files are left out.

    Raises:
        UserError: not a whole uncompressed tar.
    """
    try:
        with tarfile.open(file, "r:") as tar:
            for member in tar:
                if member.isreg() and not any(is_junk(part) for part in member.name.removeprefix("./").split("/")):
                    yield member
    except tarfile.TarError as error:
        raise UserError(
            f"not a whole uncompressed tar: {error}", where=file, remedy="copy it again, or uncompress it"
        ) from error


class TarFiles:
    """The files in the tars below ``root``. A tar is listed when the first of its files is read."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._tars: dict[str, tuple[int, dict[str, tuple[int, int]]]] = {}

    def read(self, tar: str, member: str) -> bytes:
        """The bytes of one file.

        Raises:
            FileNotFoundError: there is no such tar, or no such file in it.
            UserError: the tar is damaged.
        """
        with self._lock:
            if tar not in self._tars:
                places = {each.name: (each.offset_data, each.size) for each in members(self._root / tar)}
                self._tars[tar] = (os.open(self._root / tar, os.O_RDONLY), places)
            descriptor, places = self._tars[tar]
        if member not in places:
            raise FileNotFoundError(member)
        start, size = places[member]
        return os.pread(descriptor, size, start)

    def close(self) -> None:
        with self._lock:
            for descriptor, _ in self._tars.values():
                os.close(descriptor)
            self._tars.clear()
