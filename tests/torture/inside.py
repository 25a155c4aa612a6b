"""What happens to a run inside its own process: it is counted, killed, interrupted, or an operation of its fails.

A request names the ``arguments`` of vitcapr and the ``folder``, and:

- ``counter``: a file of eight bytes that receives the number of file operations;
- ``seconds``: an alarm ends the run then;
- ``signal`` and ``after``: a signal that it gets after so many seconds;
- ``kill_at``: the number of the file operation at which it is killed, counted from 1;
- ``fault_at`` and ``errno``: the number of the file operation that fails, and how; ``lasting``: all after it fail too;
- ``closed``: nobody reads the standard output.

A file operation is what Python reports to audit hooks: opening a file to write, renaming, removing, making a folder or
a link, starting a program.
"""

import gzip
import itertools
import mmap
import os
import signal
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from vitcapr.commands.main import main
from vitcapr.metrics import java


def cut_paraphrases(lines: int = 3000) -> None:
    """METEOR's first entries stand for its whole table, whose reading takes seconds; tests/metrics reads all."""
    table = Path(tempfile.mkdtemp()) / java._PARAPHRASES.name
    with gzip.open(java._PARAPHRASES) as whole, gzip.open(table, "wb") as part:
        part.writelines(itertools.islice(whole, lines))
    java._PARAPHRASES = table


cut_paraphrases()
OPERATIONS = frozenset(
    ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "shutil.rmtree")
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def is_operation(event: str, arguments: tuple[Any, ...], roots: tuple[str, ...]) -> bool:
    """Whether it changes files below ``roots``, or reads one that is not whole yet."""
    if event == "subprocess.Popen":
        return True
    if event not in OPERATIONS or not isinstance(arguments[0], str | bytes | os.PathLike):
        return False
    name = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100 - links stay as they are
    if event == "open" and not (arguments[2] & WRITING) and not name.endswith(".partial"):
        return False
    return name.startswith(roots)


def watch(request: dict[str, Any]) -> None:
    """Count the file operations of this process, and kill it or fail at one of them."""
    counter = mmap.mmap(os.open(request["counter"], os.O_RDWR), 8)
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


def run(request: dict[str, Any]) -> None:
    """Do what ``vitcapr ARGUMENTS`` does, and end this process."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(int(request["seconds"]))
    if "signal" in request:
        own = os.getpid()
        if not os.fork():
            time.sleep(request["after"])
            with suppress(ProcessLookupError):
                os.kill(own, request["signal"])
            os._exit(0)
    if request.get("closed"):
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, 1)
    watch(request)
    sys.argv = ["vitcapr", *request["arguments"]]
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
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)
