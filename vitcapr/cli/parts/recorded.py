"""What every stage does beside its work when a rule runs it: look on the shelf, and leave a record."""

import functools
import getpass
import json
import os
import platform
import resource
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from vitcapr.files import sha256_file, write_json
from vitcapr.progress import Reporter
from vitcapr.provenance.code import LIBRARIES, stage_code
from vitcapr.provenance.energy import Meter
from vitcapr.provenance.records import CODE_DIGESTS, FORMAT, described, record_of_log
from vitcapr.provenance.result_cache import Entry, key_of, result_cache_of

_KEYS = ("log", "settings")


@dataclass(frozen=True)
class Call:
    """One call of a stage's command.

    Args:
        module: ``vitcapr.cli.decode``.
        values: the command's parameters as its function takes them.
        writes: the options that name what the stage writes, for one whose results are kept on the shelf.
    """

    module: str
    values: Mapping[str, Any]
    writes: Sequence[str] = ()

    def files(self) -> dict[Path, str]:
        """The files that the options name, and the option; of a folder, those directly in it."""
        found: dict[Path, str] = {}
        for option, value in self.values.items():
            if option in _KEYS:
                continue
            for path in _paths(value):
                for file in _content(path):
                    found.setdefault(file, option)
        return found

    def plain_values(self) -> dict[str, Any]:
        """The options that name no file."""
        named = {option for option, value in self.values.items() if any(True for _ in _paths(value))}
        return {
            option: value if isinstance(value, str | int | float) else str(value)
            for option, value in self.values.items()
            if option not in (*_KEYS, *self.writes) and option not in named and value is not None
        }

    def targets(self) -> dict[str, Path]:
        return {option: self.values[option] for option in self.writes if self.values[option] is not None}


def recorded(command: Callable[..., Any], module: str, writes: Sequence[str] = ()) -> Callable[..., None]:
    """``command``, which leaves a record when a rule runs it, and takes its result from the shelf if it is there.

    A command that is typed by hand, with no log under ``results/<experiment>/logs``, does neither.

    Args:
        writes: as in :class:`Call`; empty for a stage that always computes. Such a stage may read nothing but what its
            options name.
    """

    @functools.wraps(command)
    def run(**values: Any) -> None:
        log: Path | None = values.get("log")
        record = None if log is None else record_of_log(log)
        if log is None or record is None:
            command(**values)
            return
        call = Call(module, values, writes)
        code = stage_code(module, remembered=record.parents[-2] / CODE_DIGESTS)
        before = _states(call.files())
        key = _key(call, code, before) if writes else None
        shelf = result_cache_of(record.parents[-2]) if writes else None
        started, first = datetime.now(UTC), _is_first()
        entry = shelf.find(key) if shelf is not None and key is not None else None
        if entry is not None:
            if first:
                entry.restore(call.targets())
                _say(log, entry)
            made, taken = dict(entry.run), started.isoformat(timespec="seconds")
        else:
            with Meter() as meter:
                begun = time.monotonic()
                command(**values)
            taken = None
            made = _made(started, time.monotonic() - begun, meter)
        if not first:
            return
        after = call.files()
        outputs = {path: option for path, option in after.items() if before.get(path) != _state(path)}
        inputs = {path: option for path, option in after.items() if path not in outputs}
        if shelf is not None and key is not None and entry is None:
            shelf.store(key, _kept(call, outputs), made)
        facts = {
            "format": FORMAT,
            "stage": module.rpartition(".")[2],
            "command": shlex.join(["python", "-m", module, *sys.argv[1:]]),
            "code": code,
            "settings": json.loads(values.get("settings") or "{}"),
            "values": call.plain_values(),
            "inputs": described(_by_option(inputs)),
            "outputs": described(_by_option(outputs)),
            "made": made,
            "result_cache": None if shelf is None else {"key": key, "restored": taken},
        }
        write_json(record, facts)

    return run


def _by_option(files: Mapping[Path, str]) -> dict[str, list[Path]]:
    return {option: [path for path, named in files.items() if named == option] for option in files.values()}


def _paths(value: Any) -> Iterator[Path]:
    """The paths that an option's value is, holds, or names behind an equals sign."""
    if isinstance(value, Path):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _paths(item)
    elif isinstance(value, str) and "/" in value:
        path = Path(value.partition("=")[2] or value)
        if len(value) < 1000 and path.exists():
            yield path


def _content(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    return [path] if path.is_file() else []


def _states(files: Mapping[Path, str]) -> dict[Path, tuple[int, int, int]]:
    return {path: _state(path) for path in files}


def _state(path: Path) -> tuple[int, int, int]:
    """What changes when a file is written, or replaced by one of the same content."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def _key(call: Call, code: Mapping[str, str], before: Mapping[Path, Any]) -> str:
    """Of everything that decides the result; the place of a file does not."""
    written = call.targets().values()
    inputs = [
        [option, path.name, sha256_file(path)]
        for path, option in call.files().items()
        if path in before and not any(path == target or target in path.parents for target in written)
    ]
    return key_of(
        {
            "stage": call.module,
            "code": code,
            "settings": call.values.get("settings"),
            "values": call.plain_values(),
            "inputs": inputs,
        }
    )


def _kept(call: Call, outputs: Mapping[Path, str]) -> dict[str, Path]:
    """The outputs by their names on the shelf."""
    targets = call.targets()
    return {
        option if targets[option] == path else f"{option}/{path.relative_to(targets[option])}": path
        for path, option in outputs.items()
        if option in targets
    }


def _made(started: datetime, seconds: float, meter: Meter) -> dict[str, Any]:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "user": _user(),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "started": started.isoformat(timespec="seconds"),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, 2),
        "peak_memory_mb": round(max(own.ru_maxrss, children.ru_maxrss) / 1024),
        "energy": meter.report(),
        "python": platform.python_version(),
        "libraries": {name: found for name in sorted(LIBRARIES.values()) if (found := _version(name))},
    }


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _is_first() -> bool:
    """Of the processes that torchrun starts, one keeps the books."""
    return os.environ.get("RANK", "0") == "0"


def _say(log: Path, entry: Entry) -> None:
    run = entry.run
    with Reporter(log) as reporter:
        reporter.line(
            f"taken from the shelf, {entry.path}: made by {run['user']} on {run['host']}, {run['started']}, "
            f"in {run['seconds']:.0f} s"
        )
