"""Digests of the user's files, cached so that unchanged files are not read again.

Snakemake asks for this whenever it reads the Snakefile, so the module imports neither pandas nor torch, and a file is
hashed once and then recognised by its size and time stamps. Snakemake's own rule, a newer modification time, misses a
file replaced by an older one; here any difference in size or times leads to a new hash, and only a new hash to a new
digest, so touching a file changes nothing.
"""

import hashlib
import json
import os
import stat
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from vitcapr.data.archive import scan
from vitcapr.errors import UserError
from vitcapr.files import canonical_json, sha256_file, write_bytes

FORMAT = "vitcapr-digests-1"
ANNOUNCED_BYTES = 64 << 20
# A file may change again within one tick of the file system's clock and keep size and times; as git does,
# a hash is remembered only if the file had been at rest for longer than any file system's tick.
AT_REST_NS = 2_000_000_000
NO_FILE = "no file"
"""In place of the hash of what is not a regular file. No stage reads it."""

# file name -> [size, modification time, change time, sha256], times in ns.
Remembered = dict[str, list[int | str]]


def content_digest(sources: Path | Iterable[Path], cache: Path, *, key: str | None = None) -> str:
    """The sha256 of every file's relative name and content below ``sources``.

    Where the files lie, their times and their order on disk do not matter. Hidden files do not count.

    Args:
        sources: a folder, a file, or several of these, whose order counts.
        cache: a file that remembers the hash of each file; made if absent, replaced if unreadable, and shared by
            any number of calls. Deleting it costs time only.
        key: the configuration key that names the sources, for the error message.
    """
    remembered = _load(cache)
    digest = hashlib.sha256()
    changed = False
    for source in [sources] if isinstance(sources, Path) else sources:
        hashes, folder_changed = _hashes(source, remembered, key)
        changed |= folder_changed
        digest.update(_encoded(hashes))
    if changed:
        # The cache only saves time: a read-only or full disk must not stop the run.
        with suppress(OSError, UserError):
            write_bytes(cache, _encoded({"format": FORMAT, "folders": remembered}))
    return digest.hexdigest()


def _hashes(source: Path, remembered: dict[str, Remembered], key: str | None) -> tuple[list[tuple[str, str]], bool]:
    """The sorted (relative name, sha256) of the files of one source, and whether ``remembered`` was changed."""
    prefix = f"{key}: " if key else ""
    try:
        if source.is_dir():
            found = {name: _regular(entry) for name, entry in scan(source)}
            base = source
        else:
            found = {source.name: source.stat()}
            base = source.parent
            if not source.is_file():
                raise UserError(f"{prefix}neither a file nor a folder", where=source)
    except FileNotFoundError as error:
        raise UserError(f"{prefix}no such file or folder", where=error.filename) from error
    except PermissionError as error:
        raise UserError(f"{prefix}permission denied", where=error.filename) from error

    # A file given by name must not push the rest of its folder out of the cache.
    entry = str(base.absolute() if source.is_dir() else source.absolute())
    known = remembered.get(entry, {})
    fresh: Remembered = {}
    hashes = {name: NO_FILE for name, status in found.items() if status is None}
    stats = {name: status for name, status in found.items() if status is not None}
    unknown = []
    for name, status in stats.items():
        seen = known.get(name)
        if seen is not None and seen[:3] == [status.st_size, status.st_mtime_ns, status.st_ctime_ns]:
            fresh[name] = seen
            hashes[name] = str(seen[3])
        else:
            unknown.append(name)
    _announce(source, [stats[name].st_size for name in unknown])
    settled = time.time_ns() - AT_REST_NS
    try:
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            computed = pool.map(sha256_file, [base / name for name in unknown])
            for name, value in zip(unknown, computed, strict=True):
                hashes[name] = value
                status = stats[name]
                if max(status.st_mtime_ns, status.st_ctime_ns) < settled:
                    fresh[name] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, value]
    except OSError as error:
        raise UserError(f"{prefix}cannot be read: {error.strerror}", where=error.filename) from error
    remembered[entry] = fresh
    return sorted(hashes.items()), fresh != known


def _regular(entry: "os.DirEntry[str]") -> os.stat_result | None:
    """None for a pipe, a device or a link that leads nowhere: such a thing is not opened."""
    try:
        status = entry.stat()
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) else None


def _encoded(value: object) -> bytes:
    """File names need not be UTF-8; Python carries their odd bytes as lone surrogates."""
    return canonical_json(value).encode("utf-8", "surrogatepass")


def _announce(source: Path, sizes: list[int]) -> None:
    if sum(sizes) >= ANNOUNCED_BYTES:
        size = f"{sum(sizes) / 1e6:,.0f} MB in {len(sizes):,} files"
        print(f"hashing {source}, {size}: once, later runs remember", file=sys.stderr)


def _load(cache: Path) -> dict[str, Remembered]:
    """The content of the cache; empty if the file is missing, damaged or in another format."""
    try:
        content = json.loads(cache.read_bytes())
        if content["format"] != FORMAT:
            return {}
        folders: dict[str, Remembered] = content["folders"]
        whole = all(
            isinstance(name, str) and isinstance(seen, list) and len(seen) == 4
            for files in folders.values()
            for name, seen in files.items()
        )
        return folders if whole else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
