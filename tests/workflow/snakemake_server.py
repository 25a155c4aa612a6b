"""Run Snakemake in forks of one process that has imported it: the import takes as long as a dry run itself.

A line of the input is one run, as JSON: ``folder``, ``environment``, ``arguments``, and the files ``stdout`` and
``stderr``. The answer to it is a line with the exit code.
"""

import json
import os
import sys
from typing import Any

from snakemake.cli import main


def run(request: dict[str, Any]) -> None:
    """Do what ``python -m snakemake`` does, in a process of its own."""
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = request["folder"]
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT), stream.fileno())
    main(request["arguments"])


for line in sys.stdin:
    child = os.fork()
    if not child:
        run(json.loads(line))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
