"""Uncompressed tars of photographs, as WebDataset has them: members by offset, for several threads."""

import os
import posixpath
import tarfile
import threading
from functools import lru_cache
from pathlib import Path

from vitcapr.data.archive import is_junk
from vitcapr.errors import UserError

SUFFIX = ".tar"
INDEXES = 64
"""Tars whose members are in memory. CC12M has 1,242 tars and LAION 41,000, more than the files a process may open."""

_PIECE = 2**20
"""Bytes between two members that are read at a time."""

Rejected = list[tuple[str, str]]
"""(item, reason) of everything that is left out."""


class OddRow(str):
    """The reason why a row of the captions cannot be read. Their share is limited, as that of damaged images is."""

    __slots__ = ()


def split_tar_path(path: str) -> tuple[str, str] | None:
    """``(a/b.tar, c/d.jpg)`` of ``a/b.tar/c/d.jpg``; None for a path that leads into no tar."""
    tar, inside, member = path.partition(f"{SUFFIX}/")
    return (f"{tar}{SUFFIX}", member) if inside and member else None


class TarFiles:
    """The files in the tars below ``root``. No tar stays open; a tar is listed when the first of its files is read."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._list = lru_cache(INDEXES)(lambda tar: list_tar(root / tar, tar))

    def members(self, tar: str, rejected: Rejected | None = None) -> dict[str, tuple[int, int]]:
        """Offset and size of each file of a tar, in its order; ``rejected`` receives what :func:`list_tar` rejects."""
        with self._lock:
            members, damaged = self._list(tar)
        if rejected is not None:
            rejected += damaged
        return members

    def read(self, tar: str, member: str) -> bytes:
        """The bytes of one file.

        Raises:
            FileNotFoundError: there is no such tar, or no such file in it.
            UserError: it is not a tar.
        """
        offset, size = self.members(tar).get(member, (0, -1))
        if size < 0:
            raise FileNotFoundError(member)
        with (self._root / tar).open("rb") as stream:
            return os.pread(stream.fileno(), size, offset)


def list_tar(file: Path, name: str) -> tuple[dict[str, tuple[int, int]], Rejected]:
    """Offset and size of each regular file of a tar, by its normalised name; hidden files are left out.

    ``tarfile`` ends at the first header that it cannot read. Here the rest is read too, and what lies between two
    members must be zeros.

    Args:
        name: of the tar, for what is rejected: what is damaged, with its offset, sparse files, and a second file of one
            name.

    Raises:
        UserError: it holds no member, and something else.
    """
    places: dict[str, tuple[int, int]] = {}
    rejected: Rejected = []
    end = 0
    with file.open("rb") as stream:
        length = os.fstat(stream.fileno()).st_size

        def check_gap(stop: int) -> None:
            stream.seek(end)
            if any(stream.read(min(_PIECE, stop - at)).strip(b"\0") for at in range(end, stop, _PIECE)):
                rejected.append((f"{name} byte {end}", "damaged: no header of a tar"))

        try:
            tar = tarfile.open(fileobj=stream, mode="r:", ignore_zeros=True)  # noqa: SIM115
            while (member := tar.next()) is not None:
                check_gap(member.offset)
                end = min(tar.offset, length)
                path = posixpath.normpath(member.name)
                place = f"{name} {path}"
                if not member.isreg() or any(map(is_junk, path.split("/"))):
                    continue
                if member.issparse():
                    rejected.append((place, "a sparse file"))
                elif member.offset_data + member.size > length:
                    rejected.append((place, "the tar ends inside this file"))
                elif path in places:
                    rejected.append((place, "a second file of this name"))
                else:
                    places[path] = (member.offset_data, member.size)
        # A damaged header has sizes and numbers of any kind.
        except (tarfile.TarError, OSError, ValueError, OverflowError) as error:
            if end < length:
                rejected.append((f"{name} byte {end}", f"damaged: {error}"))
        else:
            check_gap(length)
            if end == length > 0:
                rejected.append((f"{name} byte {end}", "the tar has no end mark: it may have been cut here"))
    if not end and rejected:
        raise UserError("not an uncompressed tar", where=file, remedy="copy it again, or uncompress it")
    return places, rejected
