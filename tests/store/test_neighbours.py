"""Another store under the same root may be damaged in any way: an extraction says so and computes the rows itself."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checkpoints import Experiment, flip_bit, make_dataset, save_checkpoint, tiny_vit
from tests.store.test_growing import with_pictures
from vitcapr.files import read_json
from vitcapr.store.known_rows import KnownRows
from vitcapr.store.reader import open_features
from vitcapr.store.writer import read_layouts


def text(content: str | bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(content if isinstance(content, bytes) else content.encode())


def value(*keys: str | int, new: Any) -> Callable[[Path], None]:
    """Another value in a JSON file."""

    def change(path: Path) -> None:
        content = inner = read_json(path)
        for key in keys[:-1]:
            inner = inner[key]
        inner[keys[-1]] = new
        path.write_text(json.dumps(content))

    return change


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def loop(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(path.name)


def longer(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


GROUP, ARRAY = "features.zarr/zarr.json", "features.zarr/cls/zarr.json"
CHUNK, RECORD, ROWS = "features.zarr/patches/c/1/0/0", "checksums/000001.json", "rows.npy"
DAMAGES: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "group cut": (GROUP, text('{"attributes": {')),
    "group empty": (GROUP, text("")),
    "group binary": (GROUP, text(bytes(range(256)))),
    "group a list": (GROUP, text("[]")),
    "group without attributes": (GROUP, text("{}")),
    "group nested": (GROUP, text("[" * 100_000)),
    "group a folder": (GROUP, folder),
    "group a loop": (GROUP, loop),
    "attributes a text": (GROUP, value("attributes", new="x")),
    "layers a number": (GROUP, value("attributes", "layers", new=5)),
    "layers lists": (GROUP, value("attributes", "layers", new=[[1]])),
    "array empty": (ARRAY, text("")),
    "array null": (ARRAY, text("null")),
    "array without grid": (ARRAY, value("chunk_grid", new={})),
    "chunk of no rows": (ARRAY, value("chunk_grid", "configuration", "chunk_shape", 0, new=0)),
    "shape of texts": (ARRAY, value("shape", new=["11", "8"])),
    "odd dtype": (ARRAY, value("data_type", new="object")),
    "dtype of the same size": (ARRAY, value("data_type", new="int16")),
    "array a folder": (ARRAY, folder),
    "group's folder a loop": ("features.zarr", loop),
    "chunk missing": (CHUNK, Path.unlink),
    "chunk longer": (CHUNK, longer),
    "chunk changed": (CHUNK, flip_bit),
    "chunk a folder": (CHUNK, folder),
    "chunk a loop": (CHUNK, loop),
    "record a list": (RECORD, text("[]")),
    "record cut": (RECORD, text('{"cls"')),
    "record of numbers": (RECORD, text('{"cls": 1, "patches": null}')),
    "rows empty": (ROWS, text("")),
    "rows fewer": (ROWS, lambda path: np.save(path, np.load(path)[:5])),
    "rows of another kind": (ROWS, lambda path: np.save(path, np.zeros((11, 32)))),
    "rows pickled": (ROWS, lambda path: np.save(path, np.array([{}]), allow_pickle=True)),
    "manifest binary": ("manifest.json", lambda path: path.write_bytes(bytes(range(256)))),
    "ids cut": ("features.zarr/image_id/c/0/0", text(b"\xff")),
    "lock a folder": ("writers.lock", folder),
}
"""File of the other store, what is done to it."""
NOT_READ = ("manifest binary", "ids cut", "lock a folder")
"""Damages of files that the copying of rows does not read."""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    root = tmp_path_factory.mktemp("old")
    experiment = Experiment(root, make_dataset(root / "data", 11), save_checkpoint(tiny_vit(), root / "noise-vit"))
    experiment.run("old")
    return experiment


def neighbour(old: Experiment, stores: Path, name: str, number: int = 0) -> Path:
    """A copy of the store of ``old``, damaged."""
    (sound,) = (old.root / "results/stores").iterdir()
    folder = stores / f"{number:016x}"
    shutil.copytree(sound, folder)
    file, damage = DAMAGES[name]
    damage(folder / file)
    return folder


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_neighbour_is_left_out(old: Experiment, tmp_path: Path, name: str) -> None:
    (sound,) = (old.root / "results/stores").iterdir()
    neighbour(old, tmp_path, name)
    lines: list[str] = []
    digests, arrays = np.load(sound / "rows.npy"), read_layouts(sound)
    recipe = read_json(sound / GROUP)["attributes"]
    known = KnownRows.find(tmp_path, recipe, digests, 4, 0, tmp_path / "new", arrays, lines.append)
    known = known.without_damaged(range(3), lines.append)
    copied = np.flatnonzero(known.source >= 0).tolist()
    if name in NOT_READ:
        assert copied == list(range(11))
    else:
        in_chunk = name.startswith(("chunk changed", "chunk missing", "chunk longer", "chunk a", "record of"))
        assert copied == ([0, 1, 2, 3, 8, 9, 10] if in_chunk else [])
    quiet = (*NOT_READ, "chunk missing", "chunk longer", "chunk a folder", "chunk a loop", "rows empty")
    assert len(lines) == (name not in quiet and not name.startswith("rows")) or name == "rows fewer"
    for index in range(3):
        known.fill(index, {name: np.empty((4, *array.shape[1:]), array.dtype) for name, array in arrays.items()})


def test_damaged_neighbours_stop_no_extraction(old: Experiment, tmp_path: Path) -> None:
    """All of them at once, and one that denies access."""
    for number, name in enumerate(DAMAGES):
        if name not in NOT_READ:
            neighbour(old, tmp_path / "results/stores", name, number)
    grown = with_pictures(replace(old, root=tmp_path), list(range(12)), "grown")
    with grown.run("new") as new, open_features(old.part("old", 0).parents[1] / "manifest.json") as before:
        np.testing.assert_allclose(new["patches"][:11], before["patches"][:], atol=2e-3)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", [GROUP, ARRAY, CHUNK, RECORD, ROWS, "features.zarr", "checksums", "."])
def test_a_neighbour_that_may_not_be_read_is_left_out(old: Experiment, tmp_path: Path, name: str) -> None:
    folder = neighbour(old, tmp_path / "results/stores", "manifest binary")
    (folder / name).chmod(0)
    try:
        with with_pictures(replace(old, root=tmp_path), list(range(12)), "grown").run("new") as new:
            assert len(new.ids) == 12
    finally:
        (folder / name).chmod(0o700)
