# ruff: noqa: B008 - a task gets its own generator when it is made
"""The whole campaign: thousands of kills, faults and hostile inputs, in any order, until the time is up."""

import itertools
import os
import random
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.torture import artefacts, configurations, datasets, faults, foreign, kills
from tests.torture.hostile import VALUES, grown
from tests.torture.sandbox import Job, files_below, jobs_of, make_project
from tests.torture.tally import Tally

KILLS, INPUTS = 1000, 1000
SLOW = ("check_claims", "score", "paraphrases", "data_scenes")
"""Stages that start Java or other processes: every file operation of theirs, but hostile inputs for the others."""

Task = Callable[[Path], None]


def kill_tasks(jobs: list[Job], first: int, tally: Tally) -> Iterator[Task]:
    """Rows of kills, one job after the other, so that every stage has its share whenever the time is up."""

    def rows_of(number: int, job: Job) -> Iterator[Task]:
        draw = random.Random(first * 1000 + number)
        counted: list[tuple[int, float]] = []
        yield lambda box: counted.append(kills.operations_of(job, box, tally))
        rows: list[list[dict[str, object]]] = []

        def kill(index: int, box: Path) -> None:
            if not counted:
                counted.append(kills.operations_of(job, box, tally))
            if not rows:
                rows.extend(kills.chains(*counted[0], draw))
            if index < len(rows):
                kills.kill_and_finish(job, box, rows[index], tally, cached=index % 4 == 3)

        for index in range(60):
            yield lambda box, index=index: kill(index, box)

    each = itertools.zip_longest(*(rows_of(number, job) for number, job in enumerate(jobs)))
    return (task for task in itertools.chain.from_iterable(each) if task is not None)


def other_tasks(project: Path, jobs: list[Job], first: int, tally: Tally) -> Iterator[Task]:
    """Hostile inputs and faults of every kind in turn."""
    values = grown(VALUES, INPUTS, first)
    quick = [job for job in jobs if job.stage not in SLOW]
    stores = [job for job in jobs if "--part" in job.arguments]
    yield lambda _: faults.close_the_output(project, tally)

    def configured(box: Path) -> Path:
        shutil.rmtree(box, ignore_errors=True)
        box.mkdir()
        shutil.copy(project / "config.yaml", box)
        return box

    yield lambda box: configurations.check_written(configured(box), tally)
    drawn = itertools.count()

    def own() -> random.Random:
        """For one task: tasks run in any order."""
        return random.Random(first * 1_000_000 + next(drawn))

    choose = own()
    for number in range(INPUTS // 4):
        job, store, new, other = choose.choice(quick), choose.choice(stores), values[number], values[-1 - number]
        yield lambda box, j=job, n=new, d=own(): artefacts.read_damaged(j, box, n, d, tally, by_hand=True)
        yield lambda box, n=other, d=own(): datasets.read_hostile_data_set(box, n, d, tally)
        yield lambda box, n=new, d=own(): configurations.check_grown(project, configured(box), n, d, tally)
        yield lambda box, j=job, d=own(): faults.suffer_and_finish(j, box, faults.draw_fault(d, 40), tally)
        match number % 4:
            case 0:
                yield lambda box, j=job, n=other, d=own(): artefacts.read_damaged(j, box, n, d, tally, by_hand=False)
                yield lambda box, d=own(): foreign.import_hostile(box, d, tally)
            case 1:
                yield lambda box, j=job, n=other, d=own(): configurations.settings_grown(j, box, n, d, tally)
                yield lambda box, d=own(): datasets.read_hostile_zip(box, d, tally)
            case 2:
                yield lambda box, n=new, d=own(): foreign.pull_hostile(project, box, n, d, tally)
            case _:
                yield lambda box, j=job, d=own(): faults.fill_a_disk(j, box, d, tally)
                yield lambda box, j=store, d=own(): kills.kill_among_writers(j, box, d, tally)
        if number % 20 == 10:
            yield lambda box, d=own(): kills.kill_snakemake(project, box, d, tally)


def in_turn(tally: Tally, killing: Iterator[Task], others: Iterator[Task]) -> Iterator[Task]:
    """Kills until there are enough, with other tasks between them."""
    for task in others:
        yield task
        if tally.count("kills") < KILLS and (kill := next(killing, None)):
            yield kill
    while tally.count("kills") < KILLS and (kill := next(killing, None)):
        yield kill


def work(tasks: Iterator[Task], folder: Path, until: float, tally: Tally) -> None:
    """Do the tasks on every core until the time is up."""
    lock = threading.Lock()

    def worker(number: int) -> None:
        while time.monotonic() < until:
            with lock:
                task = next(tasks, None)
            if task is None:
                return
            try:
                task(folder / f"box-{number}")
            except Exception:
                tally.add("faults, of the campaign itself", task.__qualname__, traceback.format_exc())

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(len(os.sched_getaffinity(0)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if time.monotonic() >= until:
        tally.note("campaigns that the time has cut short")


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_nothing_is_lost_and_nothing_is_let_in(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    minutes, first = pytestconfig.getoption("--minutes"), pytestconfig.getoption("--seed")
    began = time.monotonic()
    project = tmp_path / "project"
    make_project(project)
    whole = {path: path.read_bytes() for path in files_below(project / "results")}
    jobs = jobs_of(project)
    tally = Tally()
    print(f"\n{len(jobs)} jobs of {len({job.stage for job in jobs})} stages, made in {time.monotonic() - began:.0f} s")
    tasks = in_turn(tally, kill_tasks(jobs, first, tally), other_tasks(project, jobs, first, tally))
    try:
        work(tasks, tmp_path, began + 60 * minutes, tally)
    finally:
        load = " ".join(f"{value:.1f}" for value in os.getloadavg())
        print(f"seed {first}, {(time.monotonic() - began) / 60:.1f} minutes, load {load}\n{tally}")
    changed = [str(path) for path, content in whole.items() if not path.is_file() or path.read_bytes() != content]
    assert not changed, "the project itself was changed"
    assert not tally.problems
