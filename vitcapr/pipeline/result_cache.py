"""The result cache: finished results of long stages, so that going back to a setting computes nothing.

Snakemake keeps one result for each path: a changed learning rate replaces the model, and changing it back would train
again. In the cache ``results/result_cache`` an entry is a folder. Its name is the hash of all that the stage read and
ran. Its files are hard links to the outputs, which cost no space while the experiment still has them.
"""

import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from vitcapr.errors import UserError
from vitcapr.files import canonical_json, read_json, sha256_bytes, sha256_file, write_json

FORMAT = "vitcapr-result-1"
ENTRY = "entry.json"
VARIABLE = "VITCAPR_RESULT_CACHE"
OFF = "off"


def _check_file_name(name: str) -> str:
    """``option`` or ``option/file``: it is read in the entry and written where the stage writes its outputs."""
    parts = PurePosixPath(name).parts
    if not parts or name != "/".join(parts) or ".." in parts or name == ENTRY or "\0" in name:
        raise ValueError("a file of an entry lies in it")
    return name


@with_config(ConfigDict(extra="allow"))
class _Run(TypedDict):
    user: str
    host: str
    started: str
    seconds: float


class _Content(TypedDict):
    format: Literal["vitcapr-result-1"]
    run: _Run
    files: dict[Annotated[str, AfterValidator(_check_file_name)], str]


_CONTENT = TypeAdapter(_Content)


@dataclass(frozen=True)
class CacheEntry:
    """One finished result.

    Attributes:
        run: the facts of the run that made it: stage, host, user, time.
        files: name in the entry -> SHA-256.
        size: in bytes.
        shared: the part of ``size`` that an experiment also holds; deleting the entry does not free it.
    """

    path: Path
    run: Mapping[str, Any]
    files: Mapping[str, str]
    size: int
    shared: int

    @property
    def key(self) -> str:
        return self.path.name

    def restore(self, targets: Mapping[str, Path]) -> None:
        """Restore the files to the paths where the stage would write them.

        Args:
            targets: option -> the file or folder that the stage would write.

        Raises:
            UserError: the entry is of another stage.
        """
        for name in self.files:
            option, _, rest = name.partition("/")
            if option not in targets:
                raise UserError(f"the stage does not write '{option}'", where=self.path, remedy="delete the folder")
            target = targets[option]
            _restore(self.path / name, target / rest if rest else target)

    def is_sound(self) -> bool:
        """Whether every file is as it was when it was stored."""
        files = ((self.path / name, digest) for name, digest in self.files.items())
        return all(is_own(self.path, file) and sha256_file(file) == digest for file, digest in files)


@dataclass(frozen=True)
class ResultCache:
    """The finished results in the folder ``root``."""

    root: Path

    def find(self, key: str) -> CacheEntry | None:
        """The entry of this key; None if there is no entry or it is damaged."""
        path = self.root / key
        if not (path / ENTRY).is_file():
            return None
        try:
            entry = _read(path)
        except UserError:
            return None
        return entry if entry.is_sound() else None

    def store(self, key: str, files: Mapping[str, Path], run: Mapping[str, Any]) -> None:
        """Store ``files``, named ``option`` or ``option/file``, under ``key``; a sound entry that is there stays."""
        if self.find(key) is not None:
            return
        target = self.root / key
        unfinished = self.root / f".{key}.{secrets.token_hex(4)}.partial"
        for name, path in files.items():
            place = unfinished / name
            place.parent.mkdir(parents=True, exist_ok=True)
            _link(path, place)
        digests = {name: sha256_file(unfinished / name) for name in files}
        write_json(unfinished / ENTRY, {"format": FORMAT, "run": dict(run), "files": digests})
        shutil.rmtree(target, ignore_errors=True)
        try:
            unfinished.rename(target)
        except OSError:  # another process was first
            shutil.rmtree(unfinished)

    def entries(self) -> list[CacheEntry]:
        """Raises:
        UserError: an entry cannot be read.
        """
        found = (path.parent for path in sorted(self.root.glob(f"[!.]*/{ENTRY}")))
        return [_read(path) for path in found if not path.is_symlink()]


def key_of(fingerprint: Mapping[str, Any]) -> str:
    """32 hexadecimal digits; equal for equal code, settings and content of the inputs."""
    return sha256_bytes(canonical_json(fingerprint).encode())[:32]


def result_cache_of(results: Path) -> ResultCache | None:
    """The result cache at VITCAPR_RESULT_CACHE, by default beside the experiments; None if this variable is ``off``."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen == OFF:
        return None
    return ResultCache(Path(chosen) if chosen else results / "result_cache")


def is_own(folder: Path, file: Path) -> bool:
    """Whether ``file`` is a file below ``folder`` and no link, in whatever place, leads out of it."""
    return file.is_file() and file.resolve() == folder.resolve() / file.relative_to(folder)


def _read(path: Path) -> CacheEntry:
    try:
        content = _CONTENT.validate_python(read_json(path / ENTRY))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        what = f"not an entry of the result cache: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise UserError(what, where=path, remedy="delete the folder") from error
    states = [(path / name).stat() for name in content["files"] if is_own(path, path / name)]
    return CacheEntry(
        path,
        content["run"],
        content["files"],
        size=sum(state.st_size for state in states),
        shared=sum(state.st_size for state in states if state.st_nlink > 1),
    )


def _link(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _restore(kept: Path, target: Path) -> None:
    """``target`` becomes ``kept``, with the present time, because Snakemake compares times.

    A hard link shares its time with all other names of the file. A new time would make another experiment's result
    look new, so a file that is in use elsewhere is copied.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    if kept.stat().st_nlink == 1:
        _link(kept, temporary)
    else:
        shutil.copyfile(kept, temporary)
    os.utime(temporary)
    temporary.replace(target)
