"""Hostile features of other programs, and hostile places to pull a store from."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tests.torture.hostile import damage_file, damaged, replace_by_no_file, write_json
from tests.torture.runs import attempt
from tests.torture.sandbox import files_below
from tests.torture.tally import Tally

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
    box.mkdir()
    sealed = project / "results/tiny/features/vit/manifest.json"
    manifest = json.loads(sealed.read_text(encoding="utf-8"))
    shutil.copytree((sealed.parent / manifest["store"]).resolve(), box / "place/features.zarr")
    write_json(box / "place/manifest.json", {**manifest, "store": "features.zarr"})
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
