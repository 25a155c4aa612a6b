"""Files in a folder, in a zip or in uncompressed tars, as WebDataset has them; all stay packed, for several threads."""

import os
import posixpath
import tarfile
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Self

from vitcapr.errors import UserError
from vitcapr.files import read_untrusted

MOST_BYTES = 2**30
"""Most bytes of one file in a zip, which is unpacked in memory."""
TAR = ".tar"
INDEXES = 64
"""Tars whose members are in memory. CC12M has 1,242 tars and LAION 41,000, more than the files a process may open."""

_MOST_NAMES = 64
"""Most names of one folder: links between many folders would give them more names than there are files."""
_PIECE = 2**20
"""Bytes between two members that are read at a time."""

Rejected = list[tuple[str, str]]
"""(item, reason) of everything that is left out."""


class OddRow(str):
    """The reason why a row of the captions cannot be read. Their share is limited, as that of damaged images is."""

    __slots__ = ()


FIGURE_SUFFIX = ".attention.png"
"""Ends the names of the pictures that ``vitcapr caption --explain`` draws of photographs."""


def is_junk(name: str) -> bool:
    """Return whether a file is not the user's: a hidden file, a Mac's shadow tree, or a picture that we drew."""
    return name.startswith(".") or name == "__MACOSX" or name.lower().endswith(FIGURE_SUFFIX)


def scan(folder: Path) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Yield every file below ``folder`` except junk, in no particular order.

    Each comes as (path relative to the folder with ``/``, entry).

    Links to folders are followed, but not to a folder that leads to the link. A folder with two names is read under
    both, so that the order in which folders and links were made does not matter.

    Raises:
        UserError: links lead to one folder under too many names.
    """
    names: Counter[tuple[int, int]] = Counter()
    pending: list[tuple[str, Path, frozenset[tuple[int, int]]]] = [("", folder, frozenset())]
    while pending:
        prefix, path, above = pending.pop()
        status = path.stat()
        place = (status.st_dev, status.st_ino)
        if place in above:
            continue
        names[place] += 1
        if names[place] > _MOST_NAMES:
            raise UserError(f"links give one folder more than {_MOST_NAMES} names", where=path, remedy="remove links")
        with os.scandir(path) as entries:
            for entry in entries:
                if is_junk(entry.name):
                    continue
                if _is_folder(entry):
                    pending.append((f"{prefix}{entry.name}/", Path(entry.path), above | {place}))
                else:
                    yield f"{prefix}{entry.name}", entry


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    """Return whether an entry is a folder; a link to itself is not."""
    try:
        return entry.is_dir()
    except OSError:
        return False


class DamagedMember(Exception):
    """The zip or table is readable, this member is not."""


class Archive:
    """The files below ``root``: a folder, or a zip file that stays packed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._zip: zipfile.ZipFile | None = None
        self._lock = threading.Lock()
        try:
            if root.is_dir():
                os.scandir(root).close()
            else:
                self._zip = zipfile.ZipFile(root)
                # Some programs of Windows write backslashes.
                self._members = {
                    member.filename.replace("\\", "/"): member for member in self._zip.infolist() if not member.is_dir()
                }
        except FileNotFoundError as error:
            raise UserError("no such folder or zip", where=root) from error
        except PermissionError as error:
            raise UserError("permission denied", where=root) from error
        except Exception as error:  # A damaged directory makes zipfile raise almost anything.
            remedy = "compare its size with the original's"
            raise UserError("neither a folder nor a whole zip", where=root, remedy=remedy) from error

    def files(self) -> list[str]:
        """Paths relative to the root, with ``/``, sorted; hidden files and ``__MACOSX`` are left out."""
        if self._zip is None:
            return sorted(path for path, _ in scan(self.root))
        return sorted(name for name in self._members if not any(is_junk(part) for part in name.split("/")))

    def read(self, path: str) -> bytes:
        """Return the bytes of one file.

        Raises:
            FileNotFoundError: it is not there.
            OSError: it cannot be read, or is no file but a pipe, a device or a link to itself.
            DamagedMember: the zip holds it, but cannot give it back.
        """
        if self._zip is None:
            return read_untrusted(self.root / path)
        try:
            # ZipFile counts its open members without a lock, and closes the file when a race brings the count to zero.
            with self._lock:
                member = self._members[path]
                if member.file_size > MOST_BYTES:
                    raise DamagedMember(f"more than {MOST_BYTES} bytes")
                return self._zip.read(member)
        except KeyError as error:
            raise FileNotFoundError(path) from error
        except DamagedMember:
            raise
        # A damaged member makes zipfile and its decompressors raise almost anything.
        except Exception as error:
            raise DamagedMember(" ".join(str(error).split()) or type(error).__name__) from error

    def close(self) -> None:
        if self._zip is not None:
            self._zip.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def split_tar_path(path: str) -> tuple[str, str] | None:
    """``(a/b.tar, c/d.jpg)`` of ``a/b.tar/c/d.jpg``; None for a path that leads into no tar."""
    tar, inside, member = path.partition(f"{TAR}/")
    return (f"{tar}{TAR}", member) if inside and member else None


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
        """Return the bytes of one file.

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
        raise UserError("not an uncompressed tar", where=file, remedy="uncompress it")
    return places, rejected
