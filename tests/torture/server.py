"""Run commands of vitcapr in forks of one process that has imported everything: a fork costs milliseconds.

A line of the input is one run, as JSON; the answer is a line, too. A request names:

- ``folder``, ``environment``, ``arguments`` of vitcapr, ``output``: the file that receives what is printed;
- ``seconds``: the run is killed then, and counts as hung;
- ``signal`` and ``after``: a signal that it gets after so many seconds;
- ``kill_at``: the number of the file operation at which it is killed, counted from 1;
- ``fault_at`` and ``errno``: the number of the file operation that fails, and how; ``lasting``: all after it fail too;
- ``beside``: arguments of other commands that run at the same time and print nowhere;
- ``closed``: without standard output.

A file operation is what Python reports to audit hooks: opening a file to write, renaming, removing, making a folder or
a link, starting a program. The answer holds the exit ``code`` (negative: the signal), ``hung`` and ``operations``.
"""

import importlib
import json
import mmap
import os
import pkgutil
import signal
import sys
import time
import traceback
from contextlib import suppress
from typing import Any

LIBRARIES = (
    "torch transformers pandas pyarrow.parquet matplotlib.pyplot scipy.stats sklearn.decomposition sklearn.manifold "
    "h5py zarr PIL.Image nltk jieba.posseg safetensors.torch tokenizers grimp fsspec aiohttp yaml pydantic typer rich"
)
OPERATIONS = frozenset(
    [
        "open",
        "os.rename",
        "os.remove",
        "os.mkdir",
        "os.rmdir",
        "os.link",
        "os.symlink",
        "os.truncate",
        "shutil.rmtree",
        "subprocess.Popen",
    ]
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def is_operation(event: str, arguments: tuple[Any, ...], roots: tuple[str, ...]) -> bool:
    """Whether it changes files below ``roots``, or reads one that is not whole yet."""
    if event not in OPERATIONS:
        return False
    if event == "subprocess.Popen":
        return True
    path = arguments[0]
    if not isinstance(path, str | bytes | os.PathLike):
        return False
    name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - links stay as they are
    if event == "open" and not (arguments[2] & WRITING) and not name.endswith(".partial"):
        return False
    return name.startswith(roots)


def watch(request: dict[str, Any], counter: mmap.mmap) -> None:
    """Count the file operations of this process, and kill it or fail at one of them."""
    own, roots = os.getpid(), (request["folder"], os.environ["TMPDIR"])
    kill_at, fault_at, number = request.get("kill_at"), request.get("fault_at"), 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal number
        if os.getpid() != own or not is_operation(event, arguments, roots):
            return
        number += 1
        counter[:8] = number.to_bytes(8, "little")
        if number == kill_at:
            os.kill(own, signal.SIGKILL)
        if fault_at and (number == fault_at or (number > fault_at and request.get("lasting"))):
            raise OSError(request["errno"], os.strerror(request["errno"]), os.fsdecode(arguments[0]))

    sys.addaudithook(hook)


def become(request: dict[str, Any], counter: mmap.mmap) -> int:
    """Do what ``vitcapr ARGUMENTS`` does; returns the exit code."""
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    if request.get("closed"):
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, 1)
    for handled in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(handled, signal.default_int_handler if handled == signal.SIGINT else signal.SIG_DFL)
    watch(request, counter)
    sys.argv = ["vitcapr", *request["arguments"]]
    from vitcapr.commands.main import main

    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        code = 130
    except BaseException:
        traceback.print_exc()
        code = 1
    with suppress(OSError):
        sys.stdout.flush()
    return code


def wait(child: int, request: dict[str, Any]) -> tuple[int, bool]:
    """The exit code, and whether the time was up."""
    began, sent, pause = time.monotonic(), False, 0.001
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)
            return os.waitstatus_to_exitcode(status), False
        passed = time.monotonic() - began
        if not sent and "signal" in request and passed >= request["after"]:
            os.kill(child, request["signal"])
            sent = True
        if passed > request["seconds"]:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -signal.SIGKILL, True
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def plain(request: dict[str, Any]) -> dict[str, Any]:
    """The same without what disturbs a run."""
    kept = {name: request[name] for name in ("folder", "environment", "arguments", "seconds")}
    return {**kept, "output": os.devnull}


def fork(request: dict[str, Any], counter: mmap.mmap) -> int:
    child = os.fork()
    if not child:
        code = 1
        try:
            code = become(request, counter)
        finally:
            os._exit(code)
    return child


def serve() -> None:
    for name in LIBRARIES.split():
        importlib.import_module(name)
    import vitcapr

    for module in pkgutil.walk_packages(vitcapr.__path__, "vitcapr."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    from vitcapr.pipeline.code import stage_code

    stage_code("vitcapr.stages.seal")  # The graph of imports is built once.
    counter = mmap.mmap(-1, 8)
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        request = json.loads(line)
        counter[:8] = bytes(8)
        others = [fork({**plain(request), "arguments": words}, mmap.mmap(-1, 8)) for words in request.get("beside", ())]
        code, hung = wait(fork(request, counter), request)
        for other in others:
            other_code, other_hung = wait(other, plain(request))
            code, hung = code or other_code, hung or other_hung
        operations = int.from_bytes(counter[:8], "little")
        print(json.dumps({"code": code, "hung": hung, "operations": operations}), file=answers, flush=True)


if __name__ == "__main__":
    serve()
