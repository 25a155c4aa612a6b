"""The program ``vitcapr``: imports only the module of the given command.

It also holds what all commands share: options, one line for an error of the user, and a folder for temporary files.
"""

import ast
import importlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from vitcapr import __version__
from vitcapr.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, EXIT_NOT_READ, Preempted, UserError, did_you_mean
from vitcapr.progress import PROGRESS, is_first_process, print_lines

_OWN = ("init", "evaluate", "extract", "config", "table", "status", "why", "gc", "stage")
Log = Annotated[Path | None, typer.Option("--log", help="A file that receives every line of progress.")]
Configfiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--configfile",
        help="An experiment's file instead of config.yaml; repeat the option to merge several, the last one wins.",
    ),
]
Device = Annotated[Literal["auto", "cpu", "cuda"], typer.Option(help="Device to compute on.")]
WithoutContentCheck = Annotated[
    bool, typer.Option("--without-content-check", help="The rows are right, whatever their content says; recorded.")
]

_PLAIN: Any = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": None}
DEBUG = "VITCAPR_DEBUG"
_LONGEST = 400
"""Characters of a line: torch adds its C++ frames to some messages."""
TEMPORARY = "vitcapr-run-"
"""Begins the name of the folder of temporary files of one command."""
SPIN_COUNT = "10000"
"""How often a thread of torch's OpenMP looks for work before it sleeps (GNU's default: 300,000).

On a busy machine, the other threads of an operation wait for one that has no core. With the default, they use up what
the others need: two threads took three times as long. On an idle machine, this count costs 1 to 2 percent of time.
"""


def main() -> None:
    """Run ``vitcapr COMMAND ...``. It ends quietly if nobody reads its output any more, as after ``| head``."""
    prepare_process()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # A file name need not be UTF-8.
    try:
        try:
            _main()
        finally:
            print(end="", flush=True)
    except KeyboardInterrupt:
        _end("stopped; the same command goes on", EXIT_INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # For what is written when Python ends.
        sys.exit(EXIT_NOT_READ)


def _main() -> None:
    arguments = sys.argv[1:]
    debug = arguments[:1] == ["--debug"]
    command, *arguments = arguments[debug:] or ["--help"]
    if command in ("-h", "--help"):
        print_lines(usage())
    elif command == "--version":
        print(f"vitcapr {__version__}")
    elif module := command_modules(command).get(command):
        sys.argv = [f"vitcapr {command}", *arguments]
        run_program(_import_app(module, debug), debug)
    else:
        remedy = did_you_mean(command, command_modules(), "vitcapr --help lists the commands")
        print_lines(f"error: no command '{command}'; {remedy}", stream=sys.stderr)
        sys.exit(EXIT_BAD_INPUT)


def _import_app(module: str, debug: bool) -> Any:
    """Import a command. Extensions are read with the configuration, so that one of them may be wrong."""
    try:
        return importlib.import_module(module).app
    except UserError as error:
        if debug:
            raise
        _end(f"error: {error}", error.exit_code)


def command_modules(command: str = "") -> dict[str, str]:
    """Return the module of each command; its docstring is the command's line in the help.

    Modules of extensions are left out if ``command`` is not one of theirs.
    """
    own = {name: f"vitcapr.commands.{name.replace('-', '_')}" for name in _OWN}
    if command in own:
        return own
    from vitcapr.loader import modules_of_extensions

    return own | {name.replace("_", "-"): module for name, (module, _) in modules_of_extensions("commands").items()}


def usage() -> str:
    """Return the text of ``vitcapr --help``. No command is imported."""
    from vitcapr.loader import modules_of_extensions

    files = {name: Path(__file__).with_name(f"{name.replace('-', '_')}.py") for name in _OWN}
    files |= {name.replace("_", "-"): file for name, (_, file) in modules_of_extensions("commands").items()}
    sources = {name: file.read_bytes() for name, file in files.items()}
    lines = "\n".join(f"  {name:14}{ast.get_docstring(ast.parse(source))}" for name, source in sources.items())
    return (
        f"Usage: vitcapr [--debug] COMMAND [OPTIONS]\nvitcapr COMMAND --help explains a command.\n\n{lines}\n\n"
        "--debug shows the traceback of an error.\n"
        "The whole pipeline: snakemake --cores 2 [--configfile experiments/NAME.yaml]"
    )


class _Group(TyperGroup):
    """A program with subcommands. Its help has their whole first lines, which typer cuts off."""

    def format_commands(self, *given: Any) -> None:
        for command in self.commands.values():
            command.short_help = (command.help or "").split("\n\n")[0]
        super().format_commands(*given)


def typer_app(command: Callable[..., Any]) -> typer.Typer:
    """Return the program of one function with typer's annotations."""
    app = typer.Typer(**_PLAIN)
    app.command()(command)
    return app


def typer_group(about: str | None) -> typer.Typer:
    """Return a program whose functions become subcommands; ``about`` begins its help."""
    return typer.Typer(cls=_Group, help=about, no_args_is_help=True, **_PLAIN)


def split_commas(option: str) -> list[str]:
    """Return the words between the commas of an option."""
    return [word.strip() for word in option.split(",") if word.strip()]


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
    """Return whether there was no memory. On a CPU, torch, its oneDNN and threads say so by a plain RuntimeError."""
    words = ("can't allocate memory", "out of memory", "could not create a primitive", "can't start new thread")
    return isinstance(error, MemoryError) or any(part in str(error) for part in words)


def _end(message: str, code: int) -> None:
    """Print the message from process rank 0 only, and exit. Of an interrupted run, Snakemake's logger says so once."""
    if is_first_process() and (code != EXIT_INTERRUPTED or os.environ.get(PROGRESS[0]) != PROGRESS[1]):
        print_lines(message, stream=sys.stderr)
    sys.exit(code)


@contextmanager
def temporary_files() -> Iterator[None]:
    """Inside, temporary files of this process and of those that it starts lie in one folder, removed at the end.

    If no folder can be made, as on a full disk, temporary files lie where they would lie anyway.
    """
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    try:
        folder = tempfile.mkdtemp(prefix=TEMPORARY)
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


def prepare_process() -> None:
    """Let waiting threads sleep soon. Call it before torch is imported."""
    os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
