"""Kills, faults and hostile inputs of each kind in turn: a few of them, and the campaign of ``make torture``."""

import itertools
import os
import random
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.torture import artefacts, datasets, faults, foreign, joined, kills, layouts
from tests.torture.hostile import VALUES, grown
from tests.torture.sandbox import Job, files_below, jobs_of
from tests.torture.tally import Tally

STAGES = ("extract", "train_retriever", "seal")
ROUNDS = 1
SLOW = ("check_claims", "score", "paraphrases", "data_scenes")
"""Stages that start Java or other processes are killed; the others are attacked in every way."""


@pytest.mark.timeout(600)
def test_a_sample_of_the_campaign_ends_well(project: Path, tmp_path: Path) -> None:
    tally, box, draw = Tally(), tmp_path / "box", random.Random(0)
    jobs = [next(job for job in jobs_of(project) if job.stage == stage) for stage in STAGES]
    extraction = next(job for job in jobs if job.stage == "extract")
    faults.close_the_output(project, tally)
    for job in jobs:
        kills.kill_and_finish(job, box, draw, tally)
        kills.run_twice(job, box, draw, tally)
        faults.suffer_and_finish(job, box, ("an error once", {"fault_at": draw.randrange(1, 20), "errno": 28}), tally)
    for new in grown(VALUES, ROUNDS, 0):
        artefacts.read_damaged(draw.choice(jobs), box, new, draw, tally, by_hand=True)
        artefacts.read_damaged(draw.choice(jobs), box, new, draw, tally, by_hand=False)
        datasets.read_hostile_data_set(box, new, draw, tally)
        datasets.read_hostile_zip(box, draw, tally)
        foreign.import_hostile(box, draw, tally)
        foreign.pull_hostile(project, box, new, draw, tally)
        foreign.import_corrected(box, draw, tally)
        foreign.pull_over(project, box, draw, tally)
        foreign.extract_beside_damaged(extraction, box, new, draw, tally)
    print(tally)
    assert not tally.problems, str(tally)
    assert tally.count("kills") > 2
    assert tally.count("inputs") >= 7 * ROUNDS


def test_data_sets_of_other_programs_are_read(tmp_path: Path) -> None:
    tally = Tally()
    for number in range(27):  # each layout three times, each time with another convention
        layout, convention = layouts.LAYOUTS[number % 9], layouts.CONVENTIONS[number % 7]
        odd = layouts.ODD[(number + number // 9) % 7]
        form = layouts.Form(layout, convention, odd, accents=number % 4 == 0, marked=number % 2 == 0)
        layouts.read_layout(tmp_path / "box", random.Random(number), tally, form)
    assert not tally.problems, str(tally)


Attack = Callable[[Path, random.Random, Tally], None]


def attacks(project: Path, jobs: list[Job], first: int) -> list[Attack]:
    """One of each kind, in a sandbox."""
    values = grown(VALUES, 1000, first)
    quick = [job for job in jobs if job.stage not in SLOW]
    stores = [job for job in jobs if "part" in job.options]
    extractions = [job for job in stores if job.stage == "extract"]

    def damage(box: Path, draw: random.Random, tally: Tally, by_hand: bool) -> None:
        artefacts.read_damaged(draw.choice(quick), box, draw.choice(values), draw, tally, by_hand)

    return [
        partial(damage, by_hand=True),
        lambda box, draw, tally: datasets.read_hostile_data_set(box, draw.choice(values), draw, tally),
        lambda box, draw, tally: faults.suffer_and_finish(draw.choice(quick), box, faults.draw_fault(draw, 40), tally),
        partial(damage, by_hand=False),
        foreign.import_hostile,
        datasets.read_hostile_zip,
        lambda box, draw, tally: foreign.pull_hostile(project, box, draw.choice(values), draw, tally),
        layouts.read_layout,
        lambda box, draw, tally: joined.join(draw.choice(joined.JOINTS), box, draw, tally),
        lambda box, draw, tally: kills.kill_among_writers(draw.choice(stores), box, draw, tally),
        lambda box, draw, tally: kills.run_twice(draw.choice(quick), box, draw, tally),
        foreign.import_corrected,
        lambda box, draw, tally: foreign.pull_over(project, box, draw, tally),
        lambda box, draw, tally: foreign.extract_beside_damaged(
            draw.choice(extractions), box, draw.choice(values), draw, tally
        ),
    ]


def work(project: Path, jobs: list[Job], first: int, until: float, tally: Tally) -> None:
    """Kill and attack on every core until the time is up."""
    numbers, each = itertools.count(), attacks(project, jobs, first)

    def worker(box: Path) -> None:
        while time.monotonic() < until:
            number = next(numbers)
            draw = random.Random(first * 1_000_000 + number)
            try:
                kills.kill_and_finish(jobs[number % len(jobs)], box, draw, tally, cached=number % 4 == 3)
                each[number % len(each)](box, draw, tally)
                if number % 40 == 10:
                    kills.kill_snakemake(project, box, draw, tally)
            except Exception:
                tally.add("faults, of the campaign itself", str(number), traceback.format_exc())

    boxes = [project.parent / f"box-{number}" for number in range(len(os.sched_getaffinity(0)))]
    threads = [threading.Thread(target=worker, args=(box,)) for box in boxes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.torture
@pytest.mark.timeout(7200)
def test_nothing_is_lost_and_nothing_is_let_in(toys: Path, pytestconfig: pytest.Config) -> None:
    minutes, first = pytestconfig.getoption("--minutes"), pytestconfig.getoption("--seed")
    began = time.monotonic()
    whole = {path: path.read_bytes() for path in files_below(toys / "results")}
    jobs, tally = jobs_of(toys), Tally()
    faults.close_the_output(toys, tally)
    try:
        work(toys, jobs, first, began + 60 * minutes, tally)
    finally:
        load = " ".join(f"{value:.1f}" for value in os.getloadavg())
        print(f"\n{len(jobs)} jobs, seed {first}, {(time.monotonic() - began) / 60:.1f} minutes, load {load}\n{tally}")
    changed = [str(path) for path, content in whole.items() if not path.is_file() or path.read_bytes() != content]
    assert not changed, "the project itself was changed"
    assert not tally.problems
    assert all(map(tally.count, ("kills", "faults", "inputs"))), "the time was up before everything was tried"
