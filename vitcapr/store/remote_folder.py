"""A folder anywhere that fsspec reaches: a path, sftp, S3, GCS, the hub, http.

fsspec moves the bytes. A server is not trusted: no answer is longer than the caller allows, every file has to have its
digest, and a transfer that makes no progress is given up.
"""

import asyncio
import logging
import math
import posixpath
import random
import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import wait
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, TypeVar

import fsspec

from vitcapr.errors import UserError
from vitcapr.files import DigestedFile, atomic_path, sha256_bytes, write_bytes
from vitcapr.progress import Reporter

T = TypeVar("T")

MOST_OF_A_LIST = 64 * 2**20
"""Bytes of a list of files: a million digests."""
_HTTP = ("http", "https")
_EXTRAS = {"s3": "s3", "gs": "gs", "gcs": "gs", "sftp": "ssh", "ssh": "ssh", **dict.fromkeys(_HTTP, "http")}
"""The extra of vitcapr that installs the client of a protocol."""
_ATTEMPTS = 3
_SAMPLE = 64 * 2**20
"""Bytes of files that a push finds on a server and reads back."""
_SECRETS = re.compile(r"(?<=//)[^/?]*@|\?.*")
"""The user's name and password in an address, and what signs a request."""
_TOGETHER = 8
"""Files that are moved by one call of fsspec; a connection that is lost costs no more than these."""
_PROGRESS = 2**16
"""Bytes that have to arrive within the patience, unless the transfer ends within it."""
_GLANCE = 0.1
"""Seconds between two looks at what has arrived."""
_END = 5.0
"""Seconds that the transfers of a failed call have to end."""

logging.getLogger("gcsfs").addHandler(logging.NullHandler())  # Else its tracebacks stand above our line.


class RemoteFolder:
    """The folder at ``url``; names are relative to it, with ``/`` and perhaps ``..``.

    Attributes:
        url: the address without a user's name, password and signature.

    Args:
        patience: seconds without progress after which a transfer is given up.

    Raises:
        UserError: the protocol is unknown, its package is not installed, or the server is not there.
    """

    def __init__(self, url: str, patience: float = 60.0) -> None:
        self._address, self._patience = url, patience
        self.url = _SECRETS.sub("", url)
        self._protocol = fsspec.utils.get_protocol(url)
        self._connect()

    def _connect(self) -> None:
        options: dict[str, Any] = {"auto_mkdir": True} if self._is_local else {}
        try:
            if self._protocol in _HTTP:
                import aiohttp

                plain = {"timeout": aiohttp.ClientTimeout(total=None), "auto_decompress": False}
                options["client_kwargs"] = {**plain, "headers": {"Accept-Encoding": "identity"}}
            fs, path = fsspec.core.url_to_fs(self._address, skip_instance_cache=True, **options)
        except ImportError as error:
            what = f"a package for {self._protocol} is not installed"
            extra = _EXTRAS.get(self._protocol)
            remedy = f"pip install 'vitcapr[{extra}]'" if extra else self._hide(error)
            raise UserError(what, where=self.url, remedy=remedy) from error
        except ValueError as error:
            raise UserError(f"not a place that fsspec knows: {self._hide(error)}", where=self.url) from error
        except Exception as error:  # Each protocol has its own errors for a server that is not there.
            raise UserError(
                f"cannot connect: {self._hide(error)}", where=self.url, remedy="check the address"
            ) from error
        if hasattr(fs, "ftp"):
            fs.ftp.get_channel().settimeout(self._patience)
        self._fs: Any = fs
        self._root: str = path.rstrip("/")

    def read(self, name: str, limit: int) -> bytes:
        """Return the content of a file of at most ``limit`` bytes.

        Raises:
            FileNotFoundError: it does not exist.
            UserError: it cannot be copied, or is longer.
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "file"
            self._copy({name: (path, limit)})
            return path.read_bytes()

    def pull(self, files: Mapping[str, DigestedFile], report: Reporter) -> None:
        """Copy the files that are missing here, or damaged. One that is not as listed does not come to its path.

        Raises:
            UserError: one does not exist, cannot be copied, or is not as listed.
        """

        def fetch(names: Sequence[str]) -> None:
            with ExitStack() as stack:
                here = {name: stack.enter_context(atomic_path(files[name].path)) for name in names}
                try:
                    self._copy({name: (path, files[name].size) for name, path in here.items()})
                except FileNotFoundError as error:
                    raise UserError(f"a file is missing: {self._hide(error)}", where=self.url) from error
                for name, path in here.items():
                    if files[name]._replace(path=path).problem():
                        remedy = "delete it there and push again from a sound copy, then run the same command"
                        raise UserError(f"'{name}' does not have its checksum", where=self.url, remedy=remedy)

        self._move("pull", files, [name for name, file in files.items() if file.problem()], fetch, report)

    def problems(
        self, files: Mapping[str, DigestedFile], report: Reporter, most: float = math.inf
    ) -> tuple[dict[str, str], int]:
        """Read files in the folder, in random order, and compare them with their digests.

        Args:
            most: bytes after which no further file is read.

        Returns:
            The problem of each file that is not as listed, and the number of files that were read.
        """
        wrong, read, left = dict[str, str](), 0, most
        with report.track("compare", len(files), "files") as tracker:
            for name in random.sample([*files], len(files)):
                if left <= 0:
                    break
                try:
                    if sha256_bytes(self.read(name, files[name].size)) != files[name].sha256:
                        wrong[name] = "is damaged: its content is not what was sealed"
                except FileNotFoundError:
                    wrong[name] = "is missing"
                read, left = read + 1, left - files[name].size
                tracker.advance()
        return wrong, read

    def push(self, files: Mapping[str, DigestedFile], last: Mapping[str, bytes], report: Reporter) -> str:
        """Copy files to the folder, and then write ``last``, whose last file lists the others with their digests.

        A file that is there with its size is not sent again, unless the folder has another list. Such files are read
        and compared with their digests: all of them in a local folder, a sample of ``_SAMPLE`` bytes elsewhere.

        Returns:
            How many of the files that were there have been compared; empty if none was there.

        Raises:
            UserError: nothing can be written there, or a file here is damaged.
        """
        if self._protocol in _HTTP:
            raise UserError("cannot write there", where=self.url, remedy="http can be pulled from only; push over ssh")
        there = self._tried(self._sizes)
        index = [*last][-1]
        if index in there and self.read(index, MOST_OF_A_LIST) != last[index]:
            there = {}

        def send(names: Sequence[str]) -> None:
            for name in names:
                if problem := files[name].problem():
                    remedy = "make it again; vitcapr features verify lists the damaged files of a store"
                    raise UserError(f"'{name}' {problem}", where=files[name].path, remedy=remedy)
            self._put({name: files[name].path for name in names})

        found = {name: file for name, file in files.items() if there.get(name) == file.size}
        wrong, read = self.problems(found, report, math.inf if self._is_local else _SAMPLE) if found else ({}, 0)
        report.line(f"{len(wrong)} damaged files are sent again") if wrong else None
        self._move("push", files, [name for name in files if name not in found or name in wrong], send, report)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in last.items():
                write_bytes(Path(folder) / name, content)
                self._put({name: Path(folder) / name})
        return f"{read} of {len(found)} files that were there compared with their checksums" if found else ""

    @property
    def _is_local(self) -> bool:
        return self._protocol in ("file", "local")

    def _hide(self, message: object) -> str:
        """Return a message of fsspec without the secrets of the address."""
        text = str(message)
        for secret in _SECRETS.findall(self._address):
            for part in (secret, *re.split("[:@]", secret)[1:]):
                text = text.replace(part, "") if part else text
        return text

    def _move(
        self,
        what: str,
        files: Mapping[str, DigestedFile],
        missing: Sequence[str],
        move: Callable[[Sequence[str]], None],
        report: Reporter,
    ) -> None:
        """Move the missing files, some at a time."""
        if not missing:
            return
        moved = 0
        with report.track(what, len(files), "files", len(files) - len(missing)) as tracker:
            for first in range(0, len(missing), _TOGETHER):
                names = missing[first : first + _TOGETHER]
                move(names)
                moved += sum(files[name].size for name in names)
                tracker.advance(len(names), f"{moved / 1e6:.1f} MB")
        there = f", {len(files) - len(missing)} there already" if len(missing) < len(files) else ""
        report.line(f"{what}: {len(missing)} files copied, {moved / 1e6:.1f} MB{there}")

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

        tasks: list[asyncio.Task[None]] = []

        async def transfer_all() -> None:
            tasks.extend(map(asyncio.ensure_future, map(self._fs._get_file, names, paths)))
            try:
                await asyncio.gather(*tasks)
            finally:  # One that goes on would write its file after the others are removed.
                stop()
                await asyncio.gather(*tasks, return_exceptions=True)

        def stop() -> None:
            for task in tasks:
                task.cancel()

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
            self._fs.loop.call_soon_threadsafe(stop)
            wait([transfer], _END)

    def _put(self, files: Mapping[str, Path]) -> None:
        names, paths = [self._path(name) for name in files], [str(path) for path in files.values()]
        try:
            self._tried(lambda: self._fs.put(paths, names))
        except FileNotFoundError as error:  # Folders are made, buckets are not.
            raise UserError("there is no such bucket", where=self.url, remedy="make it, then push again") from error

    def _sizes(self) -> dict[str, int]:
        """Return the bytes of every file in the folder, by name."""
        self._fs.invalidate_cache()
        with suppress(FileNotFoundError):
            files = self._fs.find(self._root, detail=True)
            return {posixpath.relpath(path, self._root): int(facts["size"]) for path, facts in files.items()}
        return {}

    def _arrived(self, files: Mapping[str, tuple[Path, int]]) -> int:
        """Return the number of bytes of the files that are here; none may be too long."""
        sizes = [path.stat().st_size if path.is_file() else 0 for path, _ in files.values()]
        for (name, (_, limit)), size in zip(files.items(), sizes, strict=True):
            self._check_size(name, size, limit)
        return sum(sizes)

    def _check_size(self, name: str, size: int, limit: int) -> None:
        if size > limit:
            raise UserError(f"'{name}' is longer than the {limit} bytes that it may have", where=self.url)

    def _path(self, name: str) -> str:
        """Return the path of a name; ``..`` cannot lead to another host or bucket."""
        scheme, separator, rest = self._root.rpartition("://")
        host, _, folder = rest.partition("/")
        return scheme + separator + host + posixpath.normpath("/" + posixpath.join(folder, name.lstrip("/")))

    def _tried(self, work: Callable[[], T]) -> T:
        """Return the result of ``work``, which is done again after a lost connection."""
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
        why = self._hide(f"{type(problem).__name__} {problem}").strip()[:160]
        remedy = "run the same command again: what has been moved is kept"
        raise UserError(f"the connection failed {_ATTEMPTS} times: {why}", where=self.url, remedy=remedy) from problem
