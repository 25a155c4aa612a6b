"""Hostile artefacts: any file that a job reads, damaged. As the pipeline runs the job, all damage has to be found."""

import random
import shutil
from pathlib import Path
from typing import Any

from tests.torture.hostile import damage_file
from tests.torture.runs import attempt
from tests.torture.sandbox import Job, files_below
from tests.torture.tally import Tally

SEALED = ("best.safetensors", "card.json", "vocabulary.json", "manifest.json", "tokens.npz")
"""Files whose content is checked against a digest inside them or beside them, without a run record."""
SEALED_SUFFIXES = ("data/images.parquet", "data/captions.parquet", "data/objects.parquet")


def damage_an_input(job: Job, box: Path, new: Any, draw: random.Random) -> str | None:
    """Damage one file that the job reads; returns its name, or None if nothing changed."""
    chunks = [path for path in files_below(box / "results/stores") if path.parts[-3] == "c" or path.parts[-2] == "c"]
    read = [box / path for path in job.inputs if (box / path).is_file()]
    if not read:
        return None
    path = draw.choice(read)
    if any("features" in name for name in job.inputs) and chunks and draw.random() < 0.2:
        path = draw.choice(chunks)
    what = damage_file(path, new, draw)
    return None if what is None else f"{path.relative_to(box)}: {what}"


def read_damaged(job: Job, box: Path, new: Any, draw: random.Random, tally: Tally, by_hand: bool) -> None:
    """Run the job after the damage.

    With run records nothing may be accepted; without them, what is accepted has to give the same result, or be a file
    of plain values, which nothing but its record can know.
    """
    job.sandbox(box)
    name = damage_an_input(job, box, new, draw)
    if name is None:
        return
    run = attempt(box, job.by_hand if by_hand else job.arguments)
    problem = run.problem
    if run.code == 0 and problem is None and job.damage_of_outputs(box) is not None:
        path = name.partition(": ")[0]
        sealed = path.endswith((*SEALED, *SEALED_SUFFIXES)) or "/stores/" in path
        if sealed or not by_hand:
            problem = f"accepted, with another result: {job.damage_of_outputs(box)}"
        else:
            tally.note("files of plain values that were accepted without a record")
    kind = "inputs, artefacts read by hand" if by_hand else "inputs, artefacts with records"
    tally.add(kind, f"{job.name} {name}", problem)
    shutil.rmtree(box)
