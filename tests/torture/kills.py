"""Kills: at file operations of every stage, at random times, of Snakemake, and among several writers."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.torture.runs import attempt
from tests.torture.sandbox import Job, files_below, leftovers, link
from tests.torture.tally import Tally

IN_A_ROW = 3
"""Kills of a job before it may finish: a killed run begins with what another killed run left."""
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def kill_and_finish(job: Job, box: Path, draw: random.Random, tally: Tally, cached: bool = False) -> None:
    """Kill the job several times, then let it finish and compare every byte."""
    operations, seconds = operations_of(job, box, tally)
    died, what, kills = 0, "kills, at a file operation", kills_of(operations, seconds, draw)
    job.sandbox(box, cached)
    for kill in kills:
        run = attempt(box, job.arguments, **kill)
        died += run.code != 0
        if "signal" in kill:
            what = "kills, at a random time"
        if run.hung or run.traced:
            tally.add(what, f"{job.name} {kill}", run.end)
    end = attempt(box, job.arguments)
    problem = job.damage(box) if end.code == 0 else end.end
    tally.add(what, f"{job.name} {kills}", problem, died)
    for name in leftovers(box):
        tally.note(f"temporary files of {job.stage} left among the results: {name}")
    shutil.rmtree(box)


_known: dict[str, tuple[int, float]] = {}


def operations_of(job: Job, box: Path, tally: Tally) -> tuple[int, float]:
    """The number of file operations of a whole run, and its seconds; it has to give the project's bytes."""
    if job.name not in _known:
        job.sandbox(box)
        began = time.monotonic()
        run = attempt(box, job.arguments)
        _known[job.name] = run.operations, time.monotonic() - began
        problem = job.damage(box) if run.code == 0 else run.end
        if problem is not None:
            tally.add("kills, none", job.name, f"an undisturbed run differs: {problem}")
    return _known[job.name]


def kills_of(operations: int, seconds: float, draw: random.Random) -> list[dict[str, Any]]:
    """Three at file operations, or two at random times."""
    if draw.random() < 0.6:
        return [{"kill_at": draw.randint(1, operations)} for _ in range(IN_A_ROW)]
    return [{"signal": draw.choice(SIGNALS), "after": draw.uniform(0, seconds)} for _ in range(2)]


def kill_among_writers(job: Job, box: Path, draw: random.Random, tally: Tally) -> None:
    """Three processes fill one store, and one of them is killed; afterwards a fourth finds or finishes it."""
    job.sandbox(box)
    stage = job.by_hand[: job.by_hand.index("--job") + 1]
    others = [[*stage, json.dumps({**job.options, "part": f"results/other-{number}.json"})] for number in range(2)]
    run = attempt(box, job.arguments, beside=others, kill_at=draw.randrange(1, 60))
    end = attempt(box, job.arguments)
    for number in range(2):
        (box / f"results/other-{number}.json").unlink(missing_ok=True)
    problem = end.end if end.code or run.hung else job.damage(box)
    tally.add("kills, of one of three writers", job.name, problem)
    shutil.rmtree(box)


def run_twice(job: Job, box: Path, draw: random.Random, tally: Tally) -> None:
    """Two runs make the same result at once, and one of them may be killed; afterwards a third finds or finishes it."""
    job.sandbox(box)
    kill = {"kill_at": draw.randrange(1, 60)} if draw.random() < 0.5 else {}
    run = attempt(box, job.arguments, beside=[job.arguments], **kill)
    end = attempt(box, job.arguments)
    problem = run.end if run.hung or run.traced or (run.code and not run.killed) else end.end if end.code else None
    tally.add("kills, of one of two runs" if kill else "runs, two at once", job.name, problem or job.damage(box))
    shutil.rmtree(box)


TARGETS = (
    "results/tiny/captions/attention/greedy/test/captions.json",
    "results/tiny/text/word_vectors/glove/word_vectors.npz",
    "results/tiny/figures/lengths.png",
    "results/tiny/embeddings/recommended/test/embeddings.npz",
)
HOW = ("Snakemake alone", "its whole group", "Ctrl-C", "SIGINT alone", "SIGTERM")


def kill_snakemake(project: Path, box: Path, draw: random.Random, tally: Tally) -> None:
    """Kill Snakemake while it makes some targets again, and have it finish them as a user would."""
    shutil.rmtree(box, ignore_errors=True)
    for path in files_below(project):
        if "benchmarks" not in path.parts:  # Snakemake writes these in place.
            link(path, box / path.relative_to(project))
    targets = [target for target in TARGETS if (project / target).exists()]
    for target in targets:
        (box / target).unlink()
    how = draw.choice(HOW)
    command = [sys.executable, "-m", "snakemake", "--configfile", "tiny.yaml"]
    run = subprocess.Popen(
        [*command, "--cores", "2", "--", *targets],
        cwd=box,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "VITCAPR_RESULT_CACHE": "off"},
        # Where the tests run in the background, it is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    time.sleep(draw.uniform(2, 15))
    died = run.poll() is None
    begun = (
        [job for job in psutil.Process(run.pid).children(recursive=True) if "stage" in job.cmdline()] if died else []
    )
    if died and how in ("its whole group", "Ctrl-C"):
        os.killpg(run.pid, signal.SIGINT if how == "Ctrl-C" else signal.SIGKILL)
    elif died:
        run.send_signal({"SIGINT alone": signal.SIGINT, "SIGTERM": signal.SIGTERM}.get(how, signal.SIGKILL))
    try:
        run.wait(180)
        problem = None
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        problem = "Snakemake does not end"
    alive = any(is_alive(job) for job in begun)
    subprocess.run([*command, "--unlock"], cwd=box, capture_output=True, check=False)
    finishing = [*command, "--cores", "2", "--rerun-incomplete", "--", *targets]
    again = subprocess.run(finishing, cwd=box, capture_output=True, text=True, check=False)
    if again.returncode:
        problem = problem or again.stderr[-400:]
    for path in files_below(project / "results" / "tiny"):
        name = path.relative_to(project)
        same = (box / name).exists() and (box / name).read_bytes() == path.read_bytes()
        if not same and not {"runs", "logs", "benchmarks"} & set(name.parts):
            problem = problem or f"{name} is missing or has other bytes"
    tally.add("kills, of Snakemake", how, problem, int(died))
    tally.add("kills, of Snakemake whose jobs live on", how, None, int(alive))
    shutil.rmtree(box)


def copy_and_move(project: Path, box: Path, draw: random.Random, tally: Tally) -> None:
    """Copy a project without what Snakemake keeps, with new times, and move what its results were made of.

    Nothing is stale but a result that is damaged or lost.
    """
    shutil.rmtree(box, ignore_errors=True)
    shutil.copytree(project, box, symlinks=True, copy_function=shutil.copyfile, ignore=lambda *_: [".snakemake"])
    elsewhere, environment = box / "elsewhere", dict(os.environ)
    elsewhere.mkdir()
    moved = draw.random() < 0.5
    if moved:
        (box / "results/stores").rename(elsewhere / "stores")
        (box / "vectors.txt").rename(elsewhere / "vectors.txt")
        settings = (box / "tiny.yaml").read_text()
        (box / "tiny.yaml").write_text(settings.replace("vectors.txt", "elsewhere/vectors.txt"))
        environment["VITCAPR_STORES"] = str(elsewhere / "stores")
    status = [sys.executable, "-m", "vitcapr", "status", "--configfile", "tiny.yaml"]

    def ask(what: str) -> str | None:
        done = subprocess.run(status, cwd=box, env=environment, capture_output=True, text=True, check=False)
        return None if what in done.stdout else f"no '{what}' in: {done.stdout[-300:]}{done.stderr[-200:]}"

    problem = ask("everything is up to date")
    lost = draw.choice([box / target for target in TARGETS if (box / target).exists()])
    if draw.random() < 0.5:
        lost.unlink()
        problem = problem or ask(f"{lost.name} is gone")
    else:
        lost.write_bytes(lost.read_bytes() + b" ")
        problem = problem or ask(f"{lost.name} is not as it was made")
    tally.add("copies, with moved folders" if moved else "copies, without .snakemake", lost.name, problem)
    shutil.rmtree(box)


def is_alive(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
