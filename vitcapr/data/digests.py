"""Digests of the user's files, cached so that unchanged files are not read again.

Snakemake asks for this whenever it reads the Snakefile, so the module imports neither pandas nor torch, and a file is
hashed once and then recognised by its size and time stamps. Snakemake's own rule, a newer modification time, misses a
file replaced by an older one; here any difference in size or times leads to a new hash, and only a new hash to a new
digest, so touching a file changes nothing.
"""

import errno
import hashlib
import json
import os
import re
import stat
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from vitcapr.data.archive import scan
from vitcapr.errors import UserError
from vitcapr.files import canonical_json, sha256_file, write_bytes

FORMAT = "vitcapr-digests-1"
ANNOUNCED_BYTES = 64 << 20
# A file may change again within one tick of the file system's clock, or in a mapped page that Linux writes after up to
# 30 s, and keep size and times; a hash is remembered only if the file had been at rest for longer.
AT_REST_NS = 60_000_000_000
NO_FILE = "no file"
"""Stands for the hash of a pipe, a device or a broken link, which no stage reads."""

# file name -> [size, modification time, change time, sha256], times in ns.
Remembered = dict[str, list[int | str]]


def content_digest(
    sources: Path | Iterable[Path], cache: Path, *, key: str | None = None, without: re.Pattern[str] | None = None
) -> str:
    """Return the sha256 of every file's relative name and content below ``sources``.

    Where the files lie, their times and their order on disk do not matter. Hidden files do not count.

    Args:
        sources: a folder, a file, or several of these, whose order counts.
        cache: a file that remembers the hash of each file; made if absent, replaced if unreadable, and shared by
            any number of calls. Deleting it costs time only.
        key: the configuration key that names the sources, for the error message.
        without: matches the relative names of files that do not count.
    """
    remembered = _load(cache)
    digest = hashlib.sha256()
    before = dict(remembered)
    for source in [sources] if isinstance(sources, Path) else sources:
        try:
            hashes = _hashes(source, remembered)
            digest.update(_encoded([each for each in hashes if without is None or not without.fullmatch(each[0])]))
        except OSError as error:
            where, what = error.filename or source, error.strerror or error
            raise UserError(f"{key}: {what}" if key else str(what), where=where) from error
    if remembered != before:
        _save(cache, remembered)
    return digest.hexdigest()


class FileDigests:
    """Digests of single files, remembered here, and in a cache of :func:`content_digest` by :meth:`save`."""

    def __init__(self, cache: Path | None = None) -> None:
        self._cache, self._remembered, self._changed = cache, dict[str, Remembered](), False

    def of(self, path: Path) -> str:
        """Return the sha256 of a file; an OSError if it cannot be read."""
        if self._cache is not None and not self._remembered:
            self._remembered = _load(self._cache)
        # The slash keeps single files apart from a folder of the user's, whose entry lists all its files.
        known = self._remembered.setdefault(f"{path.parent.absolute()}/", {})
        times = _times(path.stat())
        if (seen := known.get(path.name, []))[:3] != times:
            seen = [*times, sha256_file(path)]
            if max(times[1:]) < time.time_ns() - AT_REST_NS:
                known[path.name], self._changed = seen, True
        return str(seen[3])

    def save(self) -> None:
        """Write the cache if it has changed."""
        if self._cache is not None and self._changed:
            _save(self._cache, _load(self._cache) | self._remembered)


def _hashes(source: Path, remembered: dict[str, Remembered]) -> list[tuple[str, str]]:
    """Return the sorted (relative name, sha256) of the files of one source; ``remembered`` is brought up to date."""
    if source.is_dir():
        base, entries = source, {name: _regular(entry) for name, entry in scan(source)}
    else:
        base, entries = source.parent, {source.name: source.stat()}
        if not source.is_file():
            raise OSError(errno.EINVAL, "neither a file nor a folder", str(source))
    # A file given by name must not push the rest of its folder out of the cache.
    entry = str(source.absolute())
    known = remembered.get(entry, {})
    stats = {name: status for name, status in entries.items() if status is not None}
    unknown = [name for name, status in stats.items() if known.get(name, [])[:3] != _times(status)]
    total = sum(stats[name].st_size for name in unknown)
    if total >= ANNOUNCED_BYTES:
        size = f"{total / 1e6:,.0f} MB in {len(unknown):,} files"
        print(f"hashing {source}, {size}: once, later runs remember", file=sys.stderr)
    settled = time.time_ns() - AT_REST_NS
    fresh = {name: known[name] for name in stats.keys() - set(unknown)}
    hashes = {name: NO_FILE for name, status in entries.items() if status is None}
    hashes |= {name: str(seen[3]) for name, seen in fresh.items()}
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for name, value in zip(unknown, pool.map(sha256_file, [base / name for name in unknown]), strict=True):
            hashes[name] = value
            if max(_times(stats[name])[1:]) < settled:
                fresh[name] = [*_times(stats[name]), value]
    remembered[entry] = fresh
    return sorted(hashes.items())


def _times(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _regular(entry: "os.DirEntry[str]") -> os.stat_result | None:
    """Return the state of a regular file; None for a pipe, a device or a broken link, which are never opened."""
    try:
        status = entry.stat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _save(cache: Path, remembered: dict[str, Remembered]) -> None:
    """Write the cache. It only saves time: a read-only or full disk must not stop the run."""
    with suppress(OSError, UserError):
        write_bytes(cache, _encoded({"format": FORMAT, "folders": remembered}))


def _encoded(value: object) -> bytes:
    """File names need not be UTF-8; Python carries their odd bytes as lone surrogates."""
    return canonical_json(value).encode("utf-8", "surrogatepass")


def _load(cache: Path) -> dict[str, Remembered]:
    """Return the content of the cache; empty if the file is missing, damaged or in another format.

    A process reads it again only if it has changed: that of 100,000 files takes a second.
    """
    try:
        status = cache.stat()
    except OSError:
        return {}
    return dict(_read(cache, status.st_ino, *_times(status)))


@lru_cache(maxsize=1)
def _read(cache: Path, *state: int) -> dict[str, Remembered]:  # noqa: ARG001
    try:
        content = json.loads(cache.read_bytes())
        folders: dict[str, Remembered] = content["folders"] if content["format"] == FORMAT else {}
        whole = all(len(seen) == 4 for files in folders.values() for seen in files.values())
        return folders if whole else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
