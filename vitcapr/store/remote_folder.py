"""A folder anywhere that fsspec reaches: a path, sftp, S3, GCS, the hub, http.

fsspec moves the bytes. A server is not trusted: no answer is longer than the caller allows, and a transfer that makes
no progress is given up.
"""

import asyncio
import logging
import posixpath
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import wait
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import fsspec

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, sha256_file

T = TypeVar("T")

_HTTP = ("http", "https")
_EXTRAS = {
    **dict.fromkeys(_HTTP, "http"),
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gs"),
    **dict.fromkeys(("sftp", "ssh"), "ssh"),
}
"""The extra of this package that brings the client of a protocol; fsspec names the package of the others."""
_ATTEMPTS = 3
_PROGRESS = 2**16
"""Bytes that have to arrive within the patience, unless the transfer ends within it."""
_GLANCE = 0.1
"""Seconds between two looks at what has arrived."""

logging.getLogger("gcsfs").addHandler(logging.NullHandler())  # Else its tracebacks stand above our line.


class Expected(NamedTuple):
    """Where a file comes to, and what its sender says of it."""

    path: Path
    size: int
    sha256: str


class RemoteFolder:
    """The folder at ``url``; names are relative to it, with ``/`` and perhaps ``..``.

    Attributes:
        url: the address without a user's name and password.
        read_only: nothing can be written there.

    Args:
        patience: seconds without progress after which a transfer is given up.

    Raises:
        UserError: the protocol is unknown, its package is not installed, or the server is not there.
    """

    def __init__(self, url: str, patience: float = 60.0) -> None:
        self._address, self._patience = url, patience
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
        """Of the protocol's client: folders are made, and over http nothing is decompressed."""
        if protocol in _HTTP:
            import aiohttp

            plain = {"Accept-Encoding": "identity"}
            options = {"timeout": aiohttp.ClientTimeout(total=None), "auto_decompress": False, "headers": plain}
            return {"client_kwargs": options}
        if protocol in ("sftp", "ssh"):
            return {f"{what}timeout": self._patience for what in ("", "banner_", "auth_", "channel_")}
        return {"auto_mkdir": True} if protocol in ("file", "local") else {}

    def fetch(self, files: Mapping[str, Expected]) -> None:
        """Copy files from the folder, by name. One that is not as expected does not come to its path.

        Raises:
            UserError: one does not exist, cannot be copied, or is not as expected.
        """
        with ExitStack() as stack:
            here = {name: stack.enter_context(atomic_path(file.path)) for name, file in files.items()}
            try:
                self._copy({name: (path, files[name].size) for name, path in here.items()})
            except FileNotFoundError as error:
                raise UserError(f"a file is missing: {error}", where=self.url) from error
            for name, path in here.items():
                if sha256_file(path) != files[name].sha256:
                    remedy = "delete it there and push again from a sound copy, then run the same command"
                    raise UserError(f"'{name}' does not have its checksum", where=self.url, remedy=remedy)

    def read(self, name: str, limit: int) -> bytes:
        """The content of a file of at most ``limit`` bytes.

        Raises:
            FileNotFoundError: it does not exist.
            UserError: it cannot be copied, or is longer.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            self._copy({name: (path, limit)})
            return path.read_bytes()

    def _copy(self, files: Mapping[str, tuple[Path, int]]) -> None:
        """Copy files from the folder: name -> where to, and how many bytes it may have."""
        self._tried(lambda: self._get(files))
        self._arrived(files)

    def _get(self, files: Mapping[str, tuple[Path, int]]) -> None:
        names, paths = [self._path(name) for name in files], [str(path) for path, _ in files.values()]
        if not self._fs.async_impl:
            for name, (_, limit) in files.items():
                info = self._fs.info(self._path(name))
                if info["type"] != "file":
                    raise UserError("not a file", where=f"{self.url}: {name}")
                self._check_size(name, info["size"], limit)
            self._fs.get(names, paths)
            return

        async def transfer_all() -> None:
            await asyncio.gather(*map(self._fs._get_file, names, paths))

        transfer = asyncio.run_coroutine_threadsafe(transfer_all(), self._fs.loop)
        mark, since = 0, time.monotonic()
        try:
            while not wait([transfer], _GLANCE).done:
                if self._arrived(files) - mark >= _PROGRESS:
                    mark, since = self._arrived(files), time.monotonic()
                elif time.monotonic() - since > self._patience:
                    remedy = "run the same command again: what has been moved is kept"
                    raise UserError(f"no progress in {self._patience:g} seconds", where=self.url, remedy=remedy)
            transfer.result()
        finally:
            transfer.cancel()

    def put(self, files: Mapping[str, Path]) -> None:
        """Copy files to the folder: name -> the file here."""
        names, paths = [self._path(name) for name in files], [str(path) for path in files.values()]
        try:
            self._tried(lambda: self._fs.put(paths, names))
        except FileNotFoundError as error:  # Folders are made, buckets are not.
            raise UserError("there is no such bucket", where=self.url, remedy="make it, then push again") from error

    def write(self, name: str, content: bytes) -> None:
        """Write a small file; raises what :meth:`put` raises."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            path.write_bytes(content)
            self.put({name: path})

    def sizes(self) -> dict[str, int]:
        """The bytes of every file in the folder, by name."""

        def sizes() -> dict[str, int]:
            self._fs.invalidate_cache()
            files = self._fs.find(self._root, detail=True)
            return {posixpath.relpath(path, self._root): int(facts["size"]) for path, facts in files.items()}

        with suppress(FileNotFoundError):
            return self._tried(sizes)
        return {}

    def remove(self, name: str) -> None:
        """Remove a file that is there."""
        self._tried(lambda: self._fs.rm_file(self._path(name)))

    def _arrived(self, files: Mapping[str, tuple[Path, int]]) -> int:
        """How many bytes of the files are here, none of which may be too long."""
        sizes = [path.stat().st_size if path.is_file() else 0 for path, _ in files.values()]
        for (name, (_, limit)), size in zip(files.items(), sizes, strict=True):
            self._check_size(name, size, limit)
        return sum(sizes)

    def _check_size(self, name: str, size: int, limit: int) -> None:
        if size > limit:
            raise UserError(f"'{name}' is longer than the {limit} bytes that it may have", where=self.url)

    def _path(self, name: str) -> str:
        """``..`` leads to no other host and to no other bucket."""
        scheme, separator, rest = self._root.rpartition("://")
        host, _, folder = rest.partition("/")
        return scheme + separator + host + posixpath.normpath("/" + posixpath.join(folder, name.lstrip("/")))

    def _tried(self, work: Callable[[], T]) -> T:
        """The result of ``work``, which is done again after a lost connection."""
        for _ in range(_ATTEMPTS):
            try:
                return work()
            except (UserError, FileNotFoundError, NotADirectoryError, IsADirectoryError):
                raise
            except PermissionError as error:
                raise UserError("permission denied", where=self.url) from error
            except NotImplementedError as error:
                raise UserError("this protocol cannot do that", where=self.url) from error
            except Exception as error:  # Each protocol has its own errors for a lost connection.
                problem = error
                with suppress(UserError):  # If the server is away, the next attempt says so.
                    self._connect()
        why = f"{type(problem).__name__} {problem}".strip()[:160]
        remedy = "run the same command again: what has been moved is kept"
        raise UserError(f"the connection failed {_ATTEMPTS} times: {why}", where=self.url, remedy=remedy) from problem
