"""The result cache: finished results of long stages, so that going back to a setting computes nothing.

In the cache ``results/result_cache`` an entry is a folder. Its name is the hash of all that the stage read and ran. Its
files are hard links to the outputs, which cost no space while the experiment still has them.
"""

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, file_states, sha256_file, write_json
from vitcapr.formats.records import read_format, reading

FORMAT = "vitcapr-result-1"
ENTRY = "entry.json"
VARIABLE = "VITCAPR_RESULT_CACHE"


@dataclass(frozen=True)
class CacheEntry:
    """A finished result.

    Attributes:
        run: the facts of the run that made it: stage, host, user, time.
        files: name in the entry, ``option`` or ``option/file`` -> SHA-256.
    """

    path: Path
    run: Mapping[str, Any]
    files: Mapping[str, str]

    @property
    def freed(self) -> int:
        """The bytes that deleting the entry frees: those of files that no experiment has."""
        states = file_states(self.path / name for name in self.files).values()
        return sum(state.st_size for state in states if state.st_nlink == 1)

    def restore(self, targets: Mapping[str, Path]) -> None:
        """Restore the files to the paths where the stage would write them, by their names in an entry.

        They get the present time, because Snakemake compares times. A hard link shares its time with all other names of
        the file, so a file in use elsewhere is copied.

        Raises:
            UserError: the entry has a file that the stage does not write.
        """
        for name in self.files:
            if name not in targets:
                raise UserError(f"the stage does not write '{name}'", where=self.path, remedy="delete the folder")
            kept = self.path / name
            with atomic_path(targets[name]) as temporary:
                (_link if kept.stat().st_nlink == 1 else shutil.copyfile)(kept, temporary)
                os.utime(temporary)


@dataclass(frozen=True)
class ResultCache:
    """The finished results in the folder ``root``."""

    root: Path

    def find(self, key: str) -> CacheEntry | None:
        """Return the entry of this key; None if there is none or a file differs from what was stored."""
        path = self.root / key
        try:
            entry = _read(path)
            intact = all(sha256_file(path / name) == digest for name, digest in entry.files.items())
        except (OSError, UserError):
            return None
        return entry if intact else None

    def store(self, key: str, files: Mapping[str, Path], run: Mapping[str, Any]) -> None:
        """Store ``files``, by their names in the entry, under ``key``, unless an intact entry is there."""
        if self.find(key) is not None:
            return
        target = self.root / key
        unfinished = self.root / f".{key}.{secrets.token_hex(4)}.partial"
        try:
            for name, path in files.items():
                place = unfinished / name
                place.parent.mkdir(parents=True, exist_ok=True)
                _link(path, place)
            digests = {name: sha256_file(unfinished / name) for name in files}
            write_json(unfinished / ENTRY, {"format": FORMAT, "run": dict(run), "files": digests})
            shutil.rmtree(target, ignore_errors=True)
            with suppress(OSError):  # another process was first
                unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def entries(self) -> list[CacheEntry]:
        """Return all entries; one that cannot be read is a UserError."""
        paths = (path.parent for path in sorted(self.root.glob(f"[!.]*/{ENTRY}")))
        return [_read(path) for path in paths if not path.is_symlink()]


def open_result_cache(results: Path) -> ResultCache | None:
    """Return the result cache at VITCAPR_RESULT_CACHE, by default beside the experiments.

    None if this variable is ``off``.
    """
    chosen = os.environ.get(VARIABLE, "")
    return None if chosen == "off" else ResultCache(Path(chosen) if chosen else results / "result_cache")


def _read(path: Path) -> CacheEntry:
    what, remedy = "an entry of the result cache", "delete its folder, and run its job"
    content = read_format(path / ENTRY, FORMAT, what, remedy)
    with reading(path / ENTRY, what, remedy):
        return CacheEntry(path, content["run"], content["files"])


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
