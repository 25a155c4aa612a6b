"""Hostile features of other programs, corrected imports, hostile places to pull a store from, damaged neighbours."""

import hashlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.torture.hostile import damage_file, damaged, replace_by_no_file, write_json
from tests.torture.runs import attempt
from tests.torture.sandbox import Job, files_below
from tests.torture.tally import Tally
from vitcapr.store.reader import open_features

ROWS = 7
IDS = [f"{row}.jpg" for row in range(ROWS)]
WRONG_IDS: tuple[list[Any], ...] = (
    *(IDS[:-1], [*IDS, "more"], [*IDS[:-1], IDS[0]], [*IDS[:-1], None], [*IDS[:-1], 5], [], [*IDS[:-1], ""]),
    [*IDS[:-1], [IDS[-1]]],
)


def write_features(kind: str, box: Path) -> Path:
    values = np.random.default_rng(0).normal(size=(ROWS, 4)).astype(np.float32)
    source = box / f"features.{kind}"
    if kind == "h5":
        with h5py.File(source, "w") as file:
            file["cls"], file["image_id"] = values, IDS
    elif kind == "npz":
        np.savez(source, cls=values, image_id=np.array(IDS))
    elif kind == "npy":
        np.save(source, values)
        write_json(box / "ids.json", IDS)
    else:
        source.mkdir()
        for name, row in zip(IDS, values, strict=True):
            np.save(source / f"{name}.npy", row)
    return source


def import_hostile(box: Path, draw: random.Random, tally: Tally) -> None:
    """A file of features that is damaged, or ids that are not one for each row."""
    shutil.rmtree(box, ignore_errors=True)
    box.mkdir()
    kind = draw.choice(("h5", "npz", "npy", "folder"))
    source = write_features(kind, box)
    arguments, must_refuse = ["features", "import", source.name, "--stores", "stores"], False
    if kind == "npy":
        arguments += ["--ids", "ids.json"]
    way = draw.random()
    file = draw.choice([source] if source.is_file() else sorted(source.iterdir()))
    if way < 0.3 and kind != "folder":
        write_json(box / "ids.json", wrong := draw.choice(WRONG_IDS))
        arguments = [*arguments[:5], "--ids", "ids.json"]
        name, must_refuse = f"{kind}, ids {wrong}"[:80], True
    elif way < 0.4:
        name = f"{kind}: {replace_by_no_file(file, draw)}"
    else:
        before = file.read_bytes()
        file.write_bytes(damaged(before, draw))
        name = f"{kind}: other bytes"
    run = attempt(box, arguments)
    problem = run.problem
    if run.code == 0 and must_refuse:
        problem = "accepted"
    tally.add("inputs, features to import", name, problem)
    shutil.rmtree(box)


def pull_hostile(project: Path, box: Path, new: Any, draw: random.Random, tally: Tally) -> None:
    """A store to pull, damaged in one file. What arrives has to be what was sealed, in its place."""
    shutil.rmtree(box, ignore_errors=True)
    copy_store(project, box / "place")
    whole = {path.relative_to(box / "place").as_posix(): path.read_bytes() for path in files_below(box / "place")}
    file = box / "place/manifest.json" if draw.random() < 0.6 else draw.choice(list(files_below(box / "place")))
    what = damage_file(file, new, draw)
    run = attempt(box, ["features", "pull", "place", "here/deep"])
    problem = run.problem
    if run.code == 0:
        for path in files_below(box / "here/deep/features.zarr"):
            name = path.relative_to(box / "here/deep").as_posix()
            if "/c/" in name and path.read_bytes() != whole.get(name):
                problem = f"{name} has other bytes than were sealed"
    strangers = {path.name for path in box.iterdir()} - {"place", "here"}
    if strangers:
        problem = f"wrote {sorted(strangers)}"
    tally.add("inputs, stores to pull", f"{file.name}: {what}", problem)
    shutil.rmtree(box)


def import_corrected(box: Path, draw: random.Random, tally: Tally) -> None:
    """An import with a wrong option, then the right one. The second has to hold what it was asked for."""
    shutil.rmtree(box, ignore_errors=True)
    box.mkdir()
    values = {name: np.random.default_rng(number).normal(size=(ROWS, 6, 4)) for number, name in enumerate("ab")}
    kind = draw.choice(("h5", "npz"))
    if kind == "h5":
        with h5py.File(box / "f.h5", "w") as file:
            file.update(values)
    else:
        np.savez(box / "f.npz", **values)
    write_json(box / "right.json", IDS)
    write_json(box / "wrong.json", draw.sample(IDS, ROWS))
    right = {"--array": "a", "--ids": "right.json", "--grid": "2x3", "--name": "x"}
    wrong = {"--array": "b", "--ids": "wrong.json", "--grid": draw.choice(("3x2", "6x1")), "--name": "y"}
    mistaken = draw.sample(sorted(right), draw.randrange(1, 4))
    problem = None
    for options in (right | {key: wrong[key] for key in mistaken}, right):
        words = [word for option in options.items() for word in option]
        run = attempt(box, ["features", "import", f"f.{kind}", "--stores", "stores", *words])
        problem = problem or run.problem
    if problem is None:
        sealed = next(line for line in run.printed.splitlines() if line.startswith("sealed: "))
        with open_features(box / sealed.removeprefix("sealed: ")) as store:
            same = np.array_equal(store["patches"][:], values["a"].astype(np.float32))
            if not same or store.ids != IDS or store.grid != (2, 3) or store.attributes["backbone"] != "x":
                problem = "the corrected import returned something else"
    tally.add("inputs, corrected imports", f"{kind}, {mistaken}", problem)
    shutil.rmtree(box)


def copy_store(project: Path, place: Path) -> Path:
    """A pushed store of the project."""
    sealed = project / "results/tiny/features/vit/manifest.json"
    manifest = json.loads(sealed.read_text(encoding="utf-8"))
    shutil.copytree((sealed.parent / manifest["store"]).resolve(), place / "features.zarr")
    write_json(place / "manifest.json", {**manifest, "store": "features.zarr"})
    return place


def pull_over(project: Path, box: Path, draw: random.Random, tally: Tally) -> None:
    """A store of the same fingerprint and other bytes is pulled over one that is whole, or a part of it."""
    shutil.rmtree(box, ignore_errors=True)
    place, here = copy_store(project, box / "place"), copy_store(project, box / "here")
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    array = draw.choice(sorted(manifest["arrays"]))
    digests = manifest["arrays"][array]["checksums"]
    number = draw.randrange(len(digests))
    (chunk,) = (place / f"features.zarr/{array}/c/{number}").rglob("0*" if array == "cls" else "0/0")
    chunk.write_bytes(bytes([chunk.read_bytes()[0] ^ 1]) + chunk.read_bytes()[1:])
    digests[number] = hashlib.sha256(chunk.read_bytes()).hexdigest()
    write_json(place / "manifest.json", manifest)
    before = {path: path.read_bytes() for path in files_below(here)}
    command = draw.choice((["pull", "place", "here"], ["pull", "place", "here", "--arrays", "cls"]))
    run = attempt(box, ["features", *command])
    changed = [path.name for path, content in before.items() if path.read_bytes() != content]
    problem = f"changed {changed}" if changed else None if run.in_one_line else run.end
    if problem is None and f"chunk {number} of '{array}' differs" not in run.printed:
        problem = f"does not say where: {run.end}"
    tally.add("inputs, pulls over a store", f"{' '.join(command)}: {array} {number}", problem)
    shutil.rmtree(box)


def extract_beside_damaged(job: Job, box: Path, new: Any, draw: random.Random, tally: Tally) -> None:
    """An extraction beside a store of the same recipe that is damaged in one file."""
    job.sandbox(box)
    stores = [path.parent for path in (job.project / "results/stores").glob("*/rows.npy")]
    neighbour = shutil.copytree(draw.choice(sorted(stores)), box / "results/stores" / ("0" * 16))
    file = draw.choice(list(files_below(neighbour)))
    what = damage_file(file, new, draw)
    run = attempt(box, job.arguments)
    missing = [path for path in job.outputs if not (box / path).is_file()]
    problem = run.end if run.code or run.traced else f"{missing} missing" if missing else None
    tally.add("inputs, damaged neighbours", f"{file.relative_to(neighbour)}: {what}", problem)
    shutil.rmtree(box)
