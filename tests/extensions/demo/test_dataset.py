"""Pictures, masks and manifest of the rendered data set, and its stage."""

import io
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pytest
from PIL import Image

from tests.checkpoints import snapshot
from vitcapr.extensions.demo import dataset
from vitcapr.extensions.demo.dataset import DRAWING, make_scene, original_of, write_scenes
from vitcapr.extensions.demo.lexicon import COLORS
from vitcapr.extensions.demo.render import render
from vitcapr.extensions.demo.scene import DEPTHS, Scene, split_of, stream
from vitcapr.extensions.demo.settings import ScenesConfig
from vitcapr.formats.manifest import read_manifest
from vitcapr.progress import Reporter


def write(directory: Path, images: int, processes: int = 1, seed: int = 1, size: int = 64) -> Path:
    with Reporter(stream=io.StringIO()) as reporter:
        scenes = ScenesConfig(images=images, size=size, seed=seed, validation=0.1, test=0.1)
        return write_scenes(directory, scenes, processes, reporter)


def drawn(index: int, size: int) -> tuple[Scene, np.ndarray, np.ndarray]:
    """Picture ``index`` of the data set 1: its scene, its pixels, and its labels."""
    scene = make_scene(1, index)
    picture, labels = render(scene, size, stream(1, index, DRAWING))
    return scene, np.asarray(picture).astype(int), np.asarray(labels)


def test_the_same_seed_gives_the_same_bytes_in_any_number_of_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "PART", 16)
    write(tmp_path / "one", 40)
    write(tmp_path / "two", 40, processes=2)
    assert snapshot(tmp_path / "one") == snapshot(tmp_path / "two")


def test_more_pictures_leave_the_first_as_they_are(tmp_path: Path) -> None:
    few, many = read_manifest(write(tmp_path / "few", 12)), read_manifest(write(tmp_path / "many", 30))
    for name in ("images", "captions", "objects"):
        table = getattr(few, name)
        pd.testing.assert_frame_equal(table, getattr(many, name).iloc[: len(table)])
    few_files, many_files = snapshot(tmp_path / "few"), snapshot(tmp_path / "many")
    for name, content in few_files.items():
        if name.startswith(("pictures/", "masks/")):
            assert many_files[name] == content


def test_the_manifest_lists_the_rendered_objects(tmp_path: Path) -> None:
    data = read_manifest(write(tmp_path / "set", 20))
    assert data.image_root == (tmp_path / "set").resolve()
    assert data.images["split"].value_counts().to_dict() == {"train": 16, "validation": 2, "test": 2}
    assert len(data.captions) == 20 * 10
    assert set(data.captions["language"]) == {"en", "zh"}
    assert data.objects is not None
    for index in range(20):
        scene = make_scene(1, index, original_of(index, 0.1, 0.1))
        row = data.images.iloc[index]
        expected = [(group.kind, group.color, group.texture) for group in scene.groups for _ in group.things]
        found = data.objects[data.objects["image_id"] == row["image_id"]]
        assert list(zip(found["kind"], found["color"], found["texture"], strict=True)) == expected
        picture = Image.open(data.image_root / row["path"])
        assert (picture.mode, picture.size) == ("RGB", (row["width"], row["height"]))
        labels = np.asarray(Image.open(data.image_root / found["mask"].iloc[0]))
        assert set(np.unique(labels)) - {0} == set(found["label"])
        texts = " ".join(data.captions[data.captions["image_id"] == row["image_id"]]["text"]).lower()
        assert all(any(word in texts for word in words) for words in found["words"])


def test_masks_lie_where_the_things_are_and_cover_them_and_not_the_background() -> None:
    """In a plain thing most pixels have its colour, and around it few."""
    plain = 0
    for index in range(80):
        scene, picture, labels = drawn(index, 112)
        things = [(group, thing) for group in scene.groups for thing in group.things]
        for number, (group, thing) in enumerate(things):
            y, x = np.nonzero(labels == number + 1)
            reach = 0.62 * thing.side * 112 + 1
            assert np.abs(x + 0.5 - 112 * thing.x).max() <= reach
            assert np.abs(y + 0.5 - 112 * thing.y).max() <= reach
            assert len(x) / (thing.side * 112) ** 2 > 0.2
            if group.texture == "plain" and group.kind in ("ball", "star", "box", "tree"):
                near = np.abs(picture - COLORS[group.color].rgb).max(axis=2) <= 24
                assert near[labels == number + 1].mean() > 0.4
                assert near[labels == 0].mean() < 0.2
                plain += 1
    assert plain > 20


def test_an_object_in_front_hides_only_a_part_of_the_object_behind() -> None:
    depths = [index for index in range(400) if make_scene(1, index).relation in DEPTHS]
    assert len(depths) > 20
    for index in depths:
        scene, _, labels = drawn(index, 64)
        back = scene.drawn[0]
        alone = np.asarray(render(replace(scene, drawn=(back,)), 64, random.Random(0))[1]) == back + 1
        assert 0.35 < (labels == back + 1).sum() / alone.sum() < 0.97


def test_splits_have_exact_shares_wherever_one_looks() -> None:
    splits = [split_of(index, 0.1, 0.1)[0] for index in range(1000)]
    for begin in range(0, 1000, 10):
        assert sorted(set(splits[begin : begin + 10])) == ["test", "train", "validation"]
    assert (splits.count("validation"), splits.count("test")) == (100, 100)
    uneven = [split_of(index, 0.05, 0.2) for index in range(1000)]
    for split, share in (("train", 750), ("validation", 50), ("test", 200)):
        assert [number for name, number in uneven if name == split] == list(range(share))


def test_every_second_held_out_picture_is_a_near_duplicate_of_one_of_its_split() -> None:
    known = {index: original_of(index, 0.05, 0.2) for index in range(400)}
    assert all(known[index] is None for index in known if split_of(index, 0.05, 0.2)[0] == "train")
    for split, pictures in (("validation", 20), ("test", 80)):
        held_out = [index for index in known if split_of(index, 0.05, 0.2)[0] == split]
        assert len(held_out) == pictures
        assert [known[index] for index in held_out[1::2]] == held_out[::2]
        assert {known[index] for index in held_out[::2]} == {None}


RENDERING = """
import sys
from pathlib import Path
from vitcapr.extensions.demo.settings import ScenesConfig
from vitcapr.extensions.demo.dataset import write_scenes
from vitcapr.errors import UserError
from vitcapr.progress import Reporter
try:
    with Reporter() as reporter:
        write_scenes(Path(sys.argv[1]), ScenesConfig(images=10_000, size=64), 2, reporter)
except UserError as error:
    sys.exit(f"error: {error}")
"""


@contextmanager
def rendering(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", list[psutil.Process]]]:
    """A process that renders more than the test waits for, and its two workers, which have begun."""
    command = [sys.executable, "-c", RENDERING, str(folder)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        workers: list[psutil.Process] = []
        try:
            while len(list(folder.glob("pictures/*"))) < 2:
                assert process.poll() is None
                time.sleep(0.05)
            children = psutil.Process(process.pid).children(recursive=True)
            workers = [child for child in children if any("spawn_main" in part for part in child.cmdline())]
            yield process, workers
        finally:
            for each in (process, *workers):
                with suppress(psutil.NoSuchProcess):
                    each.kill()


def test_a_killed_worker_is_one_line(tmp_path: Path) -> None:
    """As the kernel kills one when memory runs out."""
    with rendering(tmp_path) as (process, workers):
        workers[0].kill()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.splitlines()[-1].startswith("error: a process that rendered pictures was killed; run it again")
    assert "Traceback" not in errors


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    with rendering(tmp_path) as (process, workers):
        process.kill()
        process.wait()
        _, alive = psutil.wait_procs(workers, timeout=60)
    assert not alive
