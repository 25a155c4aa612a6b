"""Run Python in forks of one process that has imported its libraries: the imports are most of a small job.

``Forks`` is for tests. As a program this file is the process to fork, and a script that ``Forks`` writes stands in for
``python``: it has the process run its command line in a fork, with its own folder, environment and streams.
"""

import atexit
import gc
import importlib
import json
import marshal
import multiprocessing
import multiprocessing.util
import os
import pkgutil
import runpy
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

SNAKEMAKE = ("snakemake.cli", "snakemake.profiles", "snakemake.report.html_reporter", "smart_open", "grimp")
"""What a run of Snakemake imports, our Snakefile included."""
LENGTH = 8
"""Bytes of the number that comes before a request: the length of the request."""
PYTHON = """#!{python} -IS
import _socket, marshal, os, sys
request = {{"executable": os.environ.pop({variable!r}, {python!r}), "environment": dict(os.environ)}}
content = marshal.dumps(request | {{"arguments": sys.argv[1:], "folder": os.getcwd()}})
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
server.connect({address!r})
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
server.sendmsg([len(content).to_bytes({length}, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(content)
sys.exit(int(server.recv(16)))
"""
"""It imports built-in modules alone: others would take longer than the forks."""
STAND_IN = "FORKS_STAND_IN"
"""Environment variable: what a run calls ``sys.executable``, if not the real Python."""
OPENED = "FORKS_OPENED"
"""Environment variable: the folder in which every ``vitcapr stage`` notes the files that it opens for reading."""


class Forks:
    """The process to fork. It ends with the tests.

    Args:
        modules: what it imports.

    Attributes:
        python: the script that stands in for ``python``.
    """

    def __init__(self, *modules: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="forks-")
        self._address = str(Path(self._folder.name, "socket"))
        command = [sys.executable, __file__, self._address, *modules]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        self.python = Path(self._folder.name, "python")
        values = {"python": sys.executable, "address": self._address, "length": LENGTH, "variable": STAND_IN}
        self.python.write_text(PYTHON.format(**values), encoding="utf-8")
        self.python.chmod(0o755)
        atexit.register(self._process.communicate)

    def run(
        self, *arguments: str, folder: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run ``python ARGUMENTS`` in ``folder``. Whatever it starts as ``python`` is a fork, too."""
        # A file needs no reader; a pipe would be open until the last process that a killed one leaves has ended.
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        ):
            command, nothing = [self.python, *arguments], subprocess.DEVNULL
            inside = {**(os.environ if environment is None else environment), STAND_IN: str(self.python)}
            done = subprocess.run(command, cwd=folder, env=inside, stdin=nothing, stdout=out, stderr=err, check=False)
            for stream in (out, err):
                stream.seek(0)
            return subprocess.CompletedProcess(arguments, done.returncode, out.read(), err.read())


@cache
def snakemake_forks() -> Forks:
    """For tests that only run Snakemake; ``vitcapr`` is not imported and so is that of the request's folder."""
    return Forks(*SNAKEMAKE)


@cache
def planning_forks() -> Forks:
    """For runs of Snakemake whose package is the installed one: what reads the Snakefile is imported, and the code of
    every stage is known."""
    import vitcapr

    packages = tuple(f"vitcapr.{name}." for name in ("config", "experiment", "pipeline", "stages"))
    names = [module.name for module in pkgutil.walk_packages(vitcapr.__path__, "vitcapr.")]
    return Forks(*SNAKEMAKE, *(name for name in names if name.startswith(packages)), "stage_code")


def serve(address: str) -> None:
    """Answer requests until the standard input ends."""
    fork = multiprocessing.get_context("fork")
    running: dict[int, tuple[Any, socket.socket]] = {}
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while sys.stdin not in (ready := select.select([listening, sys.stdin, *running], [], [])[0]):
            for each in ready:
                if each is listening:
                    connection, _ = listening.accept()
                    child = fork.Process(target=answer, args=(connection,))
                    child.start()
                    running[os.pidfd_open(child.pid or 0)] = child, connection
                    continue
                child, connection = running.pop(each)
                child.join()
                os.close(each)
                code = child.exitcode
                with connection, suppress(OSError):  # Who asked was killed.
                    connection.sendall(f"{code if code >= 0 else 128 - code}\n".encode())
    os._exit(0)  # What still runs is not waited for.


def answer(connection: socket.socket) -> None:
    """Run a request, in a process that ends without the finalisation of all modules, which takes seconds."""
    length, streams, _, _ = socket.recv_fds(connection, LENGTH, 3)
    with connection.makefile("rb") as stream:
        request = marshal.loads(stream.read(int.from_bytes(length, "big")))
    connection.close()
    run(streams, **request)


def run(
    streams: Sequence[int], arguments: Sequence[str], folder: str, environment: Mapping[str, str], executable: str
) -> None:
    """Do what ``python -m MODULE ...``, ``python -c CODE`` and ``python FILE ...`` do."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:1] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    sys.executable = executable
    if OPENED in environment:
        note_opened(Path(environment[OPENED]), arguments)
    if arguments[0] not in ("-m", "-c"):
        sys.argv = [*arguments]
        runpy.run_path(arguments[0], run_name="__main__")
        return
    kind, what, *sys.argv[1:] = arguments
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})


def note_opened(folder: Path, arguments: Sequence[str]) -> None:
    """Write ``folder/<process>.json`` when the process ends: its arguments, and the files that it has read."""
    if list(arguments[:3]) != ["-m", "vitcapr", "stage"]:
        return
    opened = set[str]()

    def note(event: str, details: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(details[0], (str, Path)) and not set(details[1] or "") & set("wax+"):
            opened.add(os.path.abspath(details[0]))  # noqa: PTH100 - resolve() would open files

    def write() -> None:
        content = json.dumps({"arguments": list(arguments), "opened": sorted(opened)})
        (folder / f"{os.getpid()}.json").write_text(content, encoding="utf-8")

    sys.addaudithook(note)
    multiprocessing.util.Finalize(None, write, exitpriority=0)


def prepare(modules: Sequence[str]) -> None:
    """Import the modules. Snakemake looks for plugins once; a logger may lie beside a project and is found later."""
    for module in modules:
        importlib.import_module(module)
    if "snakemake.cli" in modules:
        snakemake: Any = sys.modules["snakemake.cli"]
        for kind in ("Executor", "Storage", "Report", "Scheduler"):
            getattr(snakemake, f"{kind}PluginRegistry")()


if __name__ == "__main__":
    prepare(sys.argv[2:])
    gc.freeze()  # else the first collection of each fork copies all pages
    serve(sys.argv[1])
