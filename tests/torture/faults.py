"""Faults: a disk that is full or breaks, no permission, too many open files, no standard output."""

import errno
import random
import shutil
from pathlib import Path
from typing import Any

from tests.torture.runs import attempt
from tests.torture.sandbox import Job
from tests.torture.tally import Tally

ERRORS = (errno.ENOSPC, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EIO, errno.EMFILE)
PRINTING = (
    ["config", "show", "--configfile", "tiny.yaml"],
    ["why", "results/tiny"],
    ["stage", "--help"],
    ["table", "results/tiny/summary.csv"],
    ["--help"],
)


def draw_fault(draw: random.Random, operations: int) -> tuple[str, dict[str, Any]]:
    """Its name and what it is in a request."""
    lasting = draw.random() < 1 / 3
    request = {"fault_at": draw.randint(1, operations), "errno": draw.choice(ERRORS), "lasting": lasting}
    return "an error that lasts" if lasting else "an error once", request


def suffer_and_finish(job: Job, box: Path, fault: tuple[str, dict[str, Any]], tally: Tally) -> None:
    """The job ends with one line, or does its work all the same; without the fault it finishes."""
    job.sandbox(box)
    name, request = fault
    run = attempt(box, job.arguments, **request)
    problem = job.damage(box) if run.code == 0 else run.problem
    end = attempt(box, job.arguments)
    if problem is None and (end.code or job.damage(box)):
        problem = f"afterwards: {end.end if end.code else job.damage(box)}"
    tally.add(f"faults, {name}", f"{job.name} {request}", problem)
    shutil.rmtree(box)


def close_the_output(project: Path, tally: Tally) -> None:
    """Nobody reads what a command prints, as after ``| head -1``."""
    for arguments in PRINTING:
        run = attempt(project, arguments, closed=True)
        bad = run.traced or run.hung or run.killed or "Exception ignored" in run.printed
        tally.add("faults, closed standard output", " ".join(arguments), run.end if bad else None)
