"""Files in a folder or in a zip, which stays packed: safe for several threads."""

import os
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from vitcapr.errors import UserError
from vitcapr.files import read_untrusted

MOST_BYTES = 2**30
"""Of one file in a zip, which is unpacked in memory."""


def is_junk(name: str) -> bool:
    """Whether a file or folder is the operating system's and not the data set's: hidden, or a Mac's shadow tree."""
    return name.startswith(".") or name == "__MACOSX"


def scan(folder: Path) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Every file below ``folder``, junk left out, as (path relative to it with ``/``, entry), in no particular order.

    Links to folders are followed, each folder once, so that a link to a parent ends.
    """
    seen = set()
    pending = [("", folder)]
    while pending:
        prefix, path = pending.pop()
        status = path.stat()
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        with os.scandir(path) as entries:
            for entry in entries:
                if is_junk(entry.name):
                    continue
                if _is_folder(entry):
                    pending.append((f"{prefix}{entry.name}/", Path(entry.path)))
                else:
                    yield f"{prefix}{entry.name}", entry


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    """A link to itself is no folder."""
    try:
        return entry.is_dir()
    except OSError:
        return False


class DamagedMember(Exception):
    """The zip is readable, this member is not."""


class Archive:
    """The files below a folder, or in a zip that stays packed.

    Args:
        root: a folder or a zip file.
    """

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
            raise UserError("neither a folder nor a whole zip", where=root, remedy="fetch or copy it again") from error

    def files(self) -> list[str]:
        """Paths relative to the root, with ``/``, sorted; hidden files and ``__MACOSX`` are left out."""
        if self._zip is None:
            return sorted(path for path, _ in scan(self.root))
        return sorted(name for name in self._members if not any(is_junk(part) for part in name.split("/")))

    def read(self, path: str) -> bytes:
        """The bytes of one file.

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
