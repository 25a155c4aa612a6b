"""A folder anywhere that fsspec reaches (a path, sftp, S3, GCS, http): files read and written whole, tried again.

A server is not trusted. No answer is longer than the caller allows, and every operation has a time limit.
"""

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
_PIECE = 1 << 20
_SLOWEST = 20_000
"""Bytes a second: a slower answer is given up."""

logging.getLogger("gcsfs").addHandler(logging.NullHandler())  # Else its tracebacks stand above our line.


class RemoteFolder:
    """The folder at ``url``; names are relative to it, with ``/`` and perhaps ``..``. For use by several threads.

    Attributes:
        url: the address without a user's name and password.
        read_only: nothing can be written there.

    Args:
        attempts: how often an operation is tried before a lost connection is an error.
        pause: seconds before the second attempt; doubled for each one after it.
        patience: seconds in which an answer has to begin.

    Raises:
        UserError: the protocol is unknown, its package is not installed, or the server is not there.
    """

    def __init__(self, url: str, attempts: int = 5, pause: float = 0.5, patience: float = 60.0) -> None:
        self._address, self._attempts, self._pause, self._patience = url, attempts, pause, patience
        self.url = re.sub(r"//[^/@]*@", "//", url)
        self._made: set[str] = set()
        self._lock = threading.Lock()
        self._connect()
        # Clients that are not made for it, paramiko's among them, hang when several threads use one connection.
        many = self._fs.async_impl or "file" in self._protocols
        self._turn: AbstractContextManager[object] = nullcontext() if many else threading.Lock()

    def _connect(self) -> None:
        try:
            fs, path = fsspec.core.url_to_fs(self._address, skip_instance_cache=True, **self._client_options())
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
        if hasattr(fs, "ftp"):
            fs.ftp.get_channel().settimeout(self._patience)
        self._fs: Any = fs
        self._root: str = path.rstrip("/")
        self._protocols = (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
        self.read_only = not _READ_ONLY.isdisjoint(self._protocols)
        self._put_is_atomic = not _PUT_IS_ATOMIC.isdisjoint(self._protocols)

    def _client_options(self) -> dict[str, Any]:
        """Of the protocol's client: nothing is decompressed, and silence ends."""
        protocol = fsspec.utils.get_protocol(self._address)
        if protocol in _READ_ONLY:
            import aiohttp

            limits = aiohttp.ClientTimeout(total=None, sock_connect=self._patience, sock_read=self._patience)
            plain = {"Accept-Encoding": "identity"}
            return {"client_kwargs": {"timeout": limits, "auto_decompress": False, "headers": plain}}
        if protocol in ("sftp", "ssh"):
            return {f"{what}timeout": self._patience for what in ("", "banner_", "auth_", "channel_")}
        return {}

    def read(self, name: str, limit: int) -> bytes:
        """The content of a file of at most ``limit`` bytes.

        Raises:
            FileNotFoundError: there is no such file.
            UserError: it cannot be had, or is longer.
        """
        content: bytes = self._tried(name, lambda: self._read(self._path(name), limit))
        if len(content) > limit:
            raise UserError(f"'{name}' is longer than the {limit} bytes that it may have", where=self.url)
        return content

    def _read(self, path: str, limit: int) -> bytes:
        """At most one byte more than ``limit``, which shows that the file is longer."""
        if self.read_only:
            streamed: bytes = fsspec.asyn.sync(self._fs.loop, self._stream, path, limit, timeout=self._time_for(limit))
            return streamed
        if self._fs.async_impl:
            return bytes(self._call("cat_file", path, start=0, end=limit + 1, bytes_moved=limit))
        if self._fs.info(path)["type"] != "file":
            raise UserError("not a file", where=f"{self.url}: {path}")
        deadline, parts = time.monotonic() + self._time_for(limit), bytearray()
        with self._fs.open(path, "rb") as stream:
            while part := stream.read(min(_PIECE, limit + 1 - len(parts))):
                parts += part
                if time.monotonic() > deadline:
                    raise TimeoutError
        return bytes(parts)

    async def _stream(self, url: str, limit: int) -> bytes:
        """The same over http, where a server may send more than was asked for."""
        session = await self._fs.set_session()
        async with session.get(self._fs.encode_url(url)) as answer:
            if answer.status == 404:
                raise FileNotFoundError(url)
            answer.raise_for_status()
            parts = bytearray()
            while len(parts) <= limit and (part := await answer.content.read(min(_PIECE, limit + 1 - len(parts)))):
                parts += part
            return bytes(parts)

    def _time_for(self, size: int) -> float:
        return self._patience + size / _SLOWEST

    def _call(self, method: str, *arguments: Any, bytes_moved: int = 0, **options: Any) -> Any:
        """A method of fsspec, with a time limit where its client is made for one."""
        if self._fs.async_impl:
            options["timeout"] = self._time_for(bytes_moved)
        return getattr(self._fs, method)(*arguments, **options)

    def size(self, name: str) -> int | None:
        """In bytes; None if there is no such file."""
        try:
            return int(self._tried(name, lambda: self._call("info", self._path(name)))["size"])
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
            self._call("pipe_file", path, content, bytes_moved=len(content))
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
            if self._call("exists", path):
                self._call("rm_file", path)
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
                    late = isinstance(error, TimeoutError)
                    why = "no answer in time" if late else f"{type(error).__name__} {error}".strip()[:160]
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
