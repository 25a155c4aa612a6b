"""The short form of the campaign of ``make torture``: some kills, faults and hostile inputs of every kind."""

import random
from pathlib import Path

import pytest

from tests.torture import artefacts, datasets, faults, foreign, kills
from tests.torture.hostile import VALUES, grown
from tests.torture.sandbox import jobs_of
from tests.torture.tally import Tally

STAGES = ("decode", "extract", "train_captioner", "seal")
ROUNDS = 3

pytestmark = pytest.mark.timeout(600)


def test_a_sample_of_the_campaign_ends_well(project: Path, tmp_path: Path) -> None:
    tally, box = Tally(), tmp_path / "box"
    draw = random.Random(0)
    jobs = [next(job for job in jobs_of(project) if job.stage == stage) for stage in STAGES]
    faults.close_the_output(project, tally)
    for job in jobs:
        kills.kill_and_finish(job, box, draw, tally)
        faults.suffer_and_finish(job, box, ("an error once", {"fault_at": draw.randrange(1, 20), "errno": 28}), tally)
    for new in grown(VALUES, ROUNDS, 0):
        artefacts.read_damaged(draw.choice(jobs), box, new, draw, tally, by_hand=True)
        artefacts.read_damaged(draw.choice(jobs), box, new, draw, tally, by_hand=False)
        datasets.read_hostile_data_set(box, new, draw, tally)
        datasets.read_hostile_zip(box, draw, tally)
        foreign.import_hostile(box, draw, tally)
        foreign.pull_hostile(project, box, new, draw, tally)
    assert not tally.problems, str(tally)
    assert tally.count("kills") > 2
    assert tally.count("inputs") >= 4 * ROUNDS
