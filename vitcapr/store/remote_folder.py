"""A folder anywhere that fsspec reaches: a path, sftp, S3, GCS, the hub, http.

fsspec moves the bytes. A server is not trusted: no answer is longer than the caller allows, every operation has a time
limit, and an operation is tried again after a lost connection.
"""

import logging
import posixpath
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import fsspec
from fsspec.callbacks import Callback

from vitcapr.errors import UserError

T = TypeVar("T")

_HTTP = ("http", "https")
_EXTRAS = {
    **dict.fromkeys(_HTTP, "http"),
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("sftp", "ssh"), "ssh"),
}
"""The extra of this package that brings the client of a protocol; fsspec names the package of the others."""
_LASTING = (UserError, FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""Errors that a second attempt does not mend."""
_SLOWEST = 20_000
"""Bytes a second: a slower answer is given up."""

logging.getLogger("gcsfs").addHandler(logging.NullHandler())  # Else its tracebacks stand above our line.


class RemoteFolder:
    """The folder at ``url``; names are relative to it, with ``/`` and perhaps ``..``.

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
        self._connect()
        self.read_only = fsspec.utils.get_protocol(url) in _HTTP

    def _connect(self) -> None:
        protocol = fsspec.utils.get_protocol(self._address)
        try:
            fs, path = fsspec.core.url_to_fs(self._address, skip_instance_cache=True, **self._options(protocol))
        except ImportError as error:
            remedy = f"pip install 'vitcapr[{_EXTRAS[protocol]}]'" if protocol in _EXTRAS else str(error)
            raise UserError(f"a package for {protocol} is not installed", where=self.url, remedy=remedy) from error
        except ValueError as error:
            raise UserError(f"not a place that fsspec knows: {error}", where=self.url) from error
        except Exception as error:  # Each protocol has its own errors for a server that is not there.
            raise UserError(f"cannot connect: {error}", where=self.url, remedy="check the address") from error
        if hasattr(fs, "ftp"):
            fs.ftp.get_channel().settimeout(self._patience)
        self._fs: Any = fs
        self._root: str = path.rstrip("/")

    def _options(self, protocol: str) -> dict[str, Any]:
        """Of the protocol's client: folders are made, nothing is decompressed, and silence ends."""
        if protocol in _HTTP:
            import aiohttp

            limits = aiohttp.ClientTimeout(total=None, sock_connect=self._patience, sock_read=self._patience)
            plain = {"Accept-Encoding": "identity"}
            return {"client_kwargs": {"timeout": limits, "auto_decompress": False, "headers": plain}}
        if protocol in ("sftp", "ssh"):
            return {f"{what}timeout": self._patience for what in ("", "banner_", "auth_", "channel_")}
        return {"auto_mkdir": True} if protocol in ("file", "local") else {}

    def get(self, files: Mapping[str, tuple[Path, int]]) -> None:
        """Copy files from the folder.

        Args:
            files: name -> where it is copied to, and how many bytes it may have. After a lost connection, those that
                have so many are not copied again.

        Raises:
            FileNotFoundError: one does not exist.
            UserError: one cannot be copied, or is longer.
        """

        def get() -> None:
            left = {name: file for name, file in files.items() if not _has_size(*file)}
            if not self._fs.async_impl:
                for name, (_, size) in left.items():
                    info = self._fs.info(self._path(name))
                    if info["type"] != "file":
                        raise UserError("not a file", where=f"{self.url}: {name}")
                    self._check_size(name, info["size"], size)
            limits = {str(path): size for path, size in left.values()}
            places = [self._path(name) for name in left]
            self._call("get", places, list(limits), callback=_Limits(limits), moved=sum(limits.values()))

        with suppress(_TooLong):
            self._tried(next(iter(files), ""), get)
        for name, (path, size) in files.items():
            self._check_size(name, path.stat().st_size if path.is_file() else 0, size)

    def read(self, name: str, limit: int) -> bytes:
        """The content of a file of at most ``limit`` bytes; raises what :meth:`get` raises."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            self.get({name: (path, limit)})
            return path.read_bytes()

    def put(self, files: Mapping[str, Path]) -> None:
        """Copy files to the folder: name -> the file here."""
        names, paths = list(files), [str(path) for path in files.values()]
        size = sum(path.stat().st_size for path in files.values())
        places = [self._path(name) for name in names]
        try:
            self._tried(next(iter(names), ""), lambda: self._call("put", paths, places, moved=size))
        except FileNotFoundError as error:  # Folders are made, buckets are not.
            raise UserError("there is no such bucket", where=self.url, remedy="make it, then push again") from error

    def write(self, name: str, content: bytes) -> None:
        """Write a small file; raises what :meth:`put` raises."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(content)
            self.put({name: path})

    def size(self, name: str) -> int | None:
        """In bytes; None if there is no such file."""

        def size() -> int:
            self._fs.invalidate_cache()
            return int(self._call("info", self._path(name))["size"])

        try:
            return self._tried(name, size)
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Remove a file that is there."""
        self._tried(name, lambda: self._call("rm_file", self._path(name)))

    def _call(self, method: str, *arguments: Any, moved: int = 0, **options: Any) -> Any:
        """A method of fsspec, with a time limit where its client is made for one."""
        if self._fs.async_impl:
            options["timeout"] = self._patience + moved / _SLOWEST
        return getattr(self._fs, method)(*arguments, **options)

    def _check_size(self, name: str, size: int, limit: int) -> None:
        if size > limit:
            raise UserError(f"'{name}' is longer than the {limit} bytes that it may have", where=self.url)

    def _path(self, name: str) -> str:
        """``..`` leads to no other host and to no other bucket."""
        scheme, separator, rest = self._root.rpartition("://")
        host, _, folder = rest.partition("/")
        return scheme + separator + host + posixpath.normpath("/" + posixpath.join(folder, name.lstrip("/")))

    def _tried(self, name: str, work: Callable[[], T]) -> T:
        for attempt in range(self._attempts):
            if attempt:
                time.sleep(self._pause * 2 ** (attempt - 1))
                with suppress(UserError):  # If the server is away, this attempt says so.
                    self._connect()  # A connection that broke may be of no more use.
            try:
                return work()
            except (*_LASTING, _TooLong):
                raise
            except PermissionError as error:
                raise UserError(f"'{name}': permission denied", where=self.url) from error
            except NotImplementedError as error:
                raise UserError(f"'{name}': this protocol cannot do that", where=self.url) from error
            except Exception as error:  # Each protocol has its own errors for a lost connection.
                problem = error
        late = isinstance(problem, TimeoutError)
        why = "no answer in time" if late else f"{type(problem).__name__} {problem}".strip()[:160]
        remedy = "run the same command again: what has been moved is kept"
        raise UserError(f"'{name}' failed {self._attempts} times: {why}", where=self.url, remedy=remedy) from problem


class _TooLong(Exception):
    """An answer is longer than it may be."""


class _Limits(Callback):
    """Ends a transfer once a file has more bytes than it may have; fsspec reports them to this."""

    def __init__(self, limits: Mapping[str, int], limit: int | None = None) -> None:
        super().__init__()
        self._limits, self._limit = limits, limit

    def branched(self, path_1: str, path_2: str, **_: Any) -> "_Limits":  # noqa: ARG002
        return _Limits({}, self._limits[path_2])

    def relative_update(self, inc: int = 1) -> None:
        super().relative_update(inc)
        if self._limit is not None and self.value > self._limit:
            raise _TooLong


def _has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size
