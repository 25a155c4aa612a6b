"""What every command shares: options, one line for a user's error, and a folder for temporary files."""

import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from vitcapr.errors import EXIT_BAD_INPUT, Preempted, UserError
from vitcapr.process import is_first_process

Log = Annotated[Path | None, typer.Option("--log", help="A file that receives every line of progress.")]
Configfiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--configfile",
        help="An experiment's file instead of config.yaml; repeat the option to merge several, the last one wins.",
    ),
]
Sealed = Annotated[Path, typer.Argument(help="A sealed manifest.json, or the folder that holds it.")]
Arrays = Annotated[str | None, typer.Option(help="Only these arrays, separated by commas.")]
NamedBackbone = Annotated[str | None, typer.Option(help="Hub id or folder of the backbone, if not found by its name.")]
OwnVocabulary = Annotated[Path | None, typer.Option(help="vocabulary.json, if not the experiment's own.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]

DEBUG = "VITCAPR_DEBUG"
_LONGEST = 400
"""Characters of a line: torch adds its C++ frames to some messages."""
TEMPORARY = "vitcapr-run-"
"""Begins the name of the folder of temporary files of one command."""
_LOCK = "lock"
"""A file in it. The system releases its lock when the process ends, however it ends."""
_MOMENT = 60.0
"""Seconds. A process locks its new folder at once."""


def typed(command: Callable[..., Any]) -> typer.Typer:
    """The program of one function with typer's annotations."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(command)
    return app


def run_program(app: Callable[[], Any], debug: bool = False) -> None:
    """Run a program. A user's error gives exit code 2; a stop after saving the state gives exit code 75.

    Args:
        app: reads the command line.
        debug: show the traceback of an error, as VITCAPR_DEBUG=1 does.
    """
    debug = debug or bool(os.environ.get(DEBUG))
    try:
        with temporary_files():
            if isinstance(app, typer.Typer):
                app(prog_name=sys.argv[0])
            else:
                app()
    except Preempted as stop:
        _end(f"stopped: {stop}", stop.exit_code)
    except UserError as error:
        if debug:
            raise
        _end(f"error: {error}", error.exit_code)
    except BrokenPipeError:
        raise
    except (OSError, MemoryError, RuntimeError) as error:
        if debug or (isinstance(error, RuntimeError) and not _out_of_memory(error)):
            raise
        what = " ".join(str(error).split()) or "out of memory"
        hint = "; smaller batches need less memory" if _out_of_memory(error) else ""
        _end(f"error: {what[:_LONGEST]}{hint}; vitcapr --debug shows where it came from", EXIT_BAD_INPUT)


def _out_of_memory(error: Exception) -> bool:
    """Whether there was no memory. On a CPU, torch, its oneDNN and threads say so by a plain RuntimeError."""
    words = ("can't allocate memory", "out of memory", "could not create a primitive", "can't start new thread")
    return isinstance(error, MemoryError) or any(part in str(error) for part in words)


def _end(message: str, code: int) -> None:
    """Print the message from process rank 0 only, and exit."""
    if is_first_process():
        print(message, file=sys.stderr)
    sys.exit(code)


@contextmanager
def temporary_files() -> Iterator[None]:
    """Inside, temporary files of this process and of those that it starts lie in one folder, removed at the end.

    The folders of killed commands are removed at the beginning. If no folder can be made, as on a full disk, temporary
    files lie where they would lie anyway.
    """
    remove_abandoned()
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    try:
        folder = tempfile.mkdtemp(prefix=TEMPORARY)
        lock = os.open(Path(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:
        yield
        return
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    try:
        yield
    finally:
        tempfile.tempdir = before
        os.environ.pop("TMPDIR") if variable is None else os.environ.update(TMPDIR=variable)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_abandoned() -> None:
    """Remove the folders of this user whose processes have ended."""
    for folder in Path(tempfile.gettempdir()).glob(f"{TEMPORARY}*"):
        with suppress(OSError):
            status = folder.lstat()
            if status.st_uid != os.getuid() or time.time() - status.st_mtime < _MOMENT:
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
