"""A folder anywhere that fsspec reaches (a path, sftp, S3, GCS, http): files read and written whole, tried again."""

import logging
import posixpath
import re
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import fsspec

from vitcapr.errors import UserError

T = TypeVar("T")

_PUT_IS_ATOMIC = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl", "oci", "oss", "memory"})
"""Object stores: what is put there appears whole or not at all, and renaming would copy."""
_READ_ONLY = frozenset({"http", "https"})
_EXTRAS = {
    "http": "http",
    "https": "http",
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "sftp": "ssh",
    "ssh": "ssh",
}
"""What brings the client of a protocol; fsspec says it for the others."""
_LASTING = (UserError, FileNotFoundError, PermissionError, NotADirectoryError, IsADirectoryError, NotImplementedError)
"""Errors that a second attempt does not mend."""

logging.getLogger("gcsfs").addHandler(logging.NullHandler())  # Else its tracebacks stand above our line.


class RemoteFolder:
    """The folder at ``url``; names are relative to it, with ``/`` and perhaps ``..``. For use by several threads.

    Attributes:
        url: the address without a user's name and password.
        read_only: nothing can be written there.

    Args:
        attempts: how often an operation is tried before a lost connection is an error.
        pause: seconds before the second attempt; doubled for each one after it.

    Raises:
        UserError: the protocol is unknown, its package is not installed, or the server is not there.
    """

    def __init__(self, url: str, attempts: int = 5, pause: float = 0.5) -> None:
        self._address, self._attempts, self._pause = url, attempts, pause
        self.url = re.sub(r"//[^/@]*@", "//", url)
        self._made: set[str] = set()
        self._lock = threading.Lock()
        self._connect()
        # Clients that are not made for it, paramiko's among them, hang when several threads use one connection.
        many = self._fs.async_impl or "file" in self._protocols
        self._turn: AbstractContextManager[object] = nullcontext() if many else threading.Lock()

    def _connect(self) -> None:
        try:
            fs, path = fsspec.core.url_to_fs(self._address, skip_instance_cache=True)
        except ImportError as error:
            protocol = fsspec.utils.get_protocol(self.url)
            remedy = f"pip install 'vitcapr[{_EXTRAS[protocol]}]'" if protocol in _EXTRAS else str(error)
            raise UserError(f"a package for {protocol} is not installed", where=self.url, remedy=remedy) from error
        except ValueError as error:
            raise UserError(f"not a place that fsspec knows: {error}", where=self.url) from error
        except _LASTING:
            raise
        except Exception as error:  # Each protocol has its own errors for a server that is not there.
            raise UserError(f"cannot connect: {error}", where=self.url, remedy="check the address") from error
        self._fs: Any = fs
        self._root: str = path.rstrip("/")
        self._protocols = (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
        self.read_only = not _READ_ONLY.isdisjoint(self._protocols)
        self._put_is_atomic = not _PUT_IS_ATOMIC.isdisjoint(self._protocols)

    def read(self, name: str) -> bytes:
        """Raises:
        FileNotFoundError: there is no such file.
        UserError: it cannot be had.
        """
        content: bytes = self._tried(name, lambda: self._fs.cat_file(self._path(name)))
        return content

    def size(self, name: str) -> int | None:
        """In bytes; None if there is no such file."""
        try:
            return int(self._tried(name, lambda: self._fs.info(self._path(name)))["size"])
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """The file has its old content or none until it has the new one whole.

        Raises:
            UserError: it cannot be written.
        """
        try:
            self._tried(name, lambda: self._write(self._path(name), content))
        except FileNotFoundError as error:  # Folders are made, buckets are not.
            missing = "bucket" if self._put_is_atomic else "folder"
            raise UserError(f"there is no such {missing}", where=self.url, remedy="make it, then push again") from error

    def _write(self, path: str, content: bytes) -> None:
        if self._put_is_atomic:
            self._fs.pipe_file(path, content)
        else:
            folder = posixpath.dirname(path)
            with self._lock:
                if folder not in self._made:
                    self._fs.makedirs(folder, exist_ok=True)
                    self._made.add(folder)
            temporary = f"{folder}/.{posixpath.basename(path)}.{secrets.token_hex(4)}.partial"
            self._fs.pipe_file(temporary, content)
            self._fs.mv(temporary, path)
        self._fs.invalidate_cache(posixpath.dirname(path))

    def remove(self, name: str) -> None:
        """Nothing happens if there is no such file."""
        path = self._path(name)

        def remove() -> None:
            self._fs.invalidate_cache()
            if self._fs.exists(path):
                self._fs.rm_file(path)
                self._fs.invalidate_cache()

        self._tried(name, remove)

    def _path(self, name: str) -> str:
        """``..`` leads to no other host and to no other bucket."""
        scheme, separator, rest = self._root.rpartition("://")
        host, _, folder = rest.partition("/")
        return scheme + separator + host + posixpath.normpath("/" + posixpath.join(folder, name.lstrip("/")))

    def _tried(self, name: str, work: Callable[[], T]) -> T:
        pause = self._pause
        for left in reversed(range(self._attempts)):
            try:
                with self._turn:
                    return work()
            except FileNotFoundError:
                raise
            except PermissionError as error:
                raise UserError(f"'{name}': permission denied", where=self.url) from error
            except NotImplementedError as error:
                raise UserError(f"'{name}': this protocol cannot do that", where=self.url) from error
            except _LASTING:
                raise
            except Exception as error:  # Each protocol has its own errors for a lost connection.
                if not left:
                    why = f"{type(error).__name__} {error}".strip()[:160]
                    remedy = "run the same command again: what has been moved is kept"
                    what = f"'{name}' failed {self._attempts} times: {why}"
                    raise UserError(what, where=self.url, remedy=remedy) from error
            time.sleep(pause)
            pause *= 2
            self._reconnect()
        raise AssertionError

    def _reconnect(self) -> None:
        """A connection that broke may be of no more use; if the server is away, the next attempt will say so."""
        with self._lock:
            try:
                self._connect()
            except UserError:
                return
