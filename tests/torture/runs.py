"""Runs of commands in a sandbox, through a server that forks; and whether a run ended well."""

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

SECONDS = 120.0
"""A run that takes longer hangs: the longest takes a few."""


@dataclass(frozen=True)
class Run:
    """How a run ended.

    Attributes:
        code: the exit code; negative: the signal.
        operations: the number of its file operations.
    """

    code: int
    hung: bool
    operations: int
    printed: str

    @property
    def in_one_line(self) -> bool:
        """Whether it refused its input as it should: exit code 2, and one line that says why."""
        errors = [line for line in self.printed.splitlines() if line.startswith("error: ")]
        usage = "Usage: " in self.printed and "Try '" in self.printed
        return self.code == 2 and (len(errors) == 1 or usage) and not self.traced

    @property
    def traced(self) -> bool:
        return "Traceback (most recent call last)" in self.printed

    @cached_property
    def end(self) -> str:
        """Its last line, for a report."""
        return f"code {self.code}{' (hung)' * self.hung}: " + " | ".join(self.printed.strip().splitlines()[-3:])[-300:]


class Server:
    """A process that forks runs, one at a time."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("server.py"))]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        atexit.register(self.close)

    def run(self, folder: Path, arguments: Sequence[str], seconds: float = SECONDS, **more: Any) -> Run:
        """Run ``vitcapr ARGUMENTS`` in ``folder``.

        Args:
            more: of the request; ``server.py`` lists them.
        """
        output, temporary = folder.parent / f"{folder.name}.printed", folder.parent / f"{folder.name}.tmp"
        temporary.mkdir(exist_ok=True)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary), "COLUMNS": "200"}
        environment.update(more.pop("environment", {}))
        request = {
            "folder": str(folder),
            "arguments": list(map(str, arguments)),
            "seconds": seconds,
            "environment": environment,
            "output": str(output),
            **more,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return Run(**answer, printed=output.read_text(encoding="utf-8", errors="replace"))

    def close(self) -> None:
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()


_local = threading.local()


def server() -> Server:
    """The server of this thread."""
    if not hasattr(_local, "server"):
        _local.server = Server()
    found: Server = _local.server
    return found
