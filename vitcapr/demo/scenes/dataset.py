"""The data set: picture i of a seed, its captions, its masks, and all of them written to a folder."""

import io
import multiprocessing
import random
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from vitcapr.demo.room import ScenesConfig
from vitcapr.demo.scenes import chinese, english
from vitcapr.demo.scenes.lexicon import COLORS, KINDS, LEXICON, PLACES
from vitcapr.demo.scenes.render import render
from vitcapr.demo.scenes.scene import Group, Scene, sample_scene, stream
from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes
from vitcapr.formats.manifest import write_manifest
from vitcapr.progress import Reporter
from vitcapr.workers import depend_on_parent

DATASET = "scenes"
OPPOSITES = {
    "left": "right",
    "right": "left",
    "above": "below",
    "below": "above",
    "on_left": "on_right",
    "on_right": "on_left",
}
SCENE, DRAWING, ENGLISH, CHINESE = range(4)
COMPRESSION = 3
_WORTH_A_PROCESS = 128
"""Pictures that take about as long as the start of a process."""


@dataclass(frozen=True)
class Rendered:
    """One picture of the data set.

    Attributes:
        picture: PNG bytes; ``mask`` those of its 8-bit label picture.
        captions: language -> five captions.
    """

    scene: Scene
    picture: bytes
    mask: bytes
    captions: dict[str, list[str]]


def make_scene(seed: int, index: int, original: int | None = None) -> Scene:
    """Scene ``index`` of the data set ``seed``; with ``original``, a near duplicate of that scene."""
    rng = stream(seed, index, SCENE)
    return sample_scene(rng) if original is None else near_duplicate(make_scene(seed, original), rng)


def make_picture(seed: int, index: int, size: int, original: int | None = None) -> Rendered:
    """Picture ``index`` of the data set ``seed``: the same bytes whatever the number of pictures and processes."""
    scene = make_scene(seed, index, original)
    picture, mask = render(scene, size, stream(seed, index, DRAWING))
    texts = {
        "en": english.captions(scene, stream(seed, index, ENGLISH)),
        "zh": chinese.captions(scene, stream(seed, index, CHINESE)),
    }
    return Rendered(scene, _png(picture), _png(mask), texts)


def split_of(index: int, validation: float, test: float) -> tuple[str, int]:
    """The split of picture ``index``, and how many pictures of that split are before it, for any number of pictures.

    Pictures are independent of each other, so their positions serve: with shares of a tenth each, every fifth
    picture is held out, for the two splits in turn. Any ten pictures in a row then have some of each.
    """
    held_out = Fraction(str(validation)) + Fraction(str(test))
    before = int(index * held_out)
    if int((index + 1) * held_out) == before:
        return "train", index - before
    share = Fraction(str(test)) / held_out
    tests = int(before * share)
    return ("test", tests) if int((before + 1) * share) > tests else ("validation", before - tests)


def original_of(index: int, validation: float, test: float) -> int | None:
    """The picture that picture ``index`` is a near duplicate of.

    Every second picture of a held-out split is one of the picture before it in that split. The others, and all of the
    train split, are none.
    """
    split, number = split_of(index, validation, test)
    if split == "train" or number % 2 == 0:
        return None
    return next(other for other in range(index - 1, -1, -1) if split_of(other, validation, test)[0] == split)


def write_scenes(
    directory: Path, scenes: ScenesConfig, processes: int, reporter: Reporter, *, near_duplicates: bool = True
) -> Path:
    """Render pictures into ``directory/pictures`` and ``directory/masks`` and write the manifest.

    With ``near_duplicates``, the pictures that :func:`original_of` names are near duplicates.

    The pictures stand unsealed until the manifest, written last, names their checksums. Memory holds the tables, not
    the pictures.

    Returns:
        The path of ``manifest.json``.
    """
    for folder in ("pictures", "masks"):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    make = partial(_write_picture, directory, scenes, near_duplicates)
    tables: dict[str, list[dict[str, Any]]] = {"images": [], "captions": [], "objects": []}
    number = scenes.images
    with reporter.track("scenes", number, "pictures") as tracker, mapped(make, number, processes) as results:
        for rows in results:
            for name, table in tables.items():
                table.extend(rows[name])
            tracker.advance()
    return write_manifest(
        directory,
        dataset=DATASET,
        image_root=directory,
        images=pd.DataFrame(tables["images"]),
        captions=pd.DataFrame(tables["captions"]),
        objects=pd.DataFrame(tables["objects"]),
        rejected=[],
    )


@contextmanager
def mapped(make: Callable[[int], Any], number: int, processes: int) -> Iterator[Iterator[Any]]:
    """``make`` of 0 to ``number - 1`` in this order; of many, in several processes.

    Args:
        make: a function that can be pickled.

    Raises:
        UserError: a process was killed.
        Exception: what ``make`` raised.
    """
    count = min(processes, number // _WORTH_A_PROCESS)
    if count <= 1:
        yield map(make, range(number))
        return
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), depend_on_parent)
    try:
        # The pool hangs if a process is killed while requests are added, so they are few and added before a process
        # has begun; pool.map would hang later, too: it cancels requests that the pool then fails.
        starts = range(0, number, _WORTH_A_PROCESS)
        futures = deque(
            pool.submit(_each, make, range(start, min(start + _WORTH_A_PROCESS, number))) for start in starts
        )
        yield (result for _ in starts for result in futures.popleft().result())
    except BrokenProcessPool as error:
        raise UserError(
            "a process that rendered pictures was killed",
            remedy="run it again; if memory ran out, with fewer CPU cores (taskset) or with more memory",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _each(make: Callable[[int], Any], numbers: range) -> list[Any]:
    return list(map(make, numbers))


def _write_picture(
    directory: Path, scenes: ScenesConfig, near_duplicates: bool, index: int
) -> dict[str, list[dict[str, Any]]]:
    """Write one picture and its mask; its rows of the three tables."""
    original = original_of(index, scenes.validation, scenes.test) if near_duplicates else None
    rendered = make_picture(scenes.seed, index, scenes.size, original)
    image_id, (split, _) = f"scene-{index:07d}", split_of(index, scenes.validation, scenes.test)
    path, mask = f"pictures/{index:07d}.png", f"masks/{index:07d}.png"
    (directory / path).write_bytes(rendered.picture)
    (directory / mask).write_bytes(rendered.mask)
    image = {
        "image_id": image_id,
        "path": path,
        "split": split,
        "width": scenes.size,
        "height": scenes.size,
        "sha256": sha256_bytes(rendered.picture),
    }
    captions = [
        {
            "caption_id": f"{image_id}-{language}-{number}",
            "image_row": index,
            "language": language,
            "text": text,
        }
        for language, texts in rendered.captions.items()
        for number, text in enumerate(texts)
    ]
    groups = [group for group in rendered.scene.groups for _ in group.things]
    objects = [
        {
            "image_id": image_id,
            "object_id": number,
            "words": KINDS[group.kind].words(),
            "mask": mask,
            "label": number + 1,
            "kind": group.kind,
            "color": group.color,
            "texture": group.texture,
        }
        for number, group in enumerate(groups)
    ]
    return {"images": [image], "captions": captions, "objects": objects}


def _png(image: Image.Image) -> bytes:
    stream_ = io.BytesIO()
    image.save(stream_, "PNG", compress_level=COMPRESSION)
    return stream_.getvalue()


def near_duplicate(scene: Scene, rng: random.Random) -> Scene:
    """``scene`` with the colour or the texture of one group, the place or the side changed; each is as likely.

    A retriever that knows only what is in a picture, and not of which colour, with which texture, where or on which
    side, takes one for the other.
    """
    ways = [list(way(scene)) for way in (_recolored, _retextured, _elsewhere, _mirrored)]
    return rng.choice(rng.choice([scenes for scenes in ways if scenes]))


def _recolored(scene: Scene) -> Iterator[Scene]:
    taken = {group.color for group in scene.groups} | set(PLACES[scene.place].avoided)
    for number, group in enumerate(scene.groups):
        for color in COLORS:
            if color not in taken:
                yield _with_group(scene, number, replace(group, color=color))


def _retextured(scene: Scene) -> Iterator[Scene]:
    for number, group in enumerate(scene.groups):
        for texture in LEXICON.textures:
            if texture != group.texture:
                yield _with_group(scene, number, replace(group, texture=texture))


def _elsewhere(scene: Scene) -> Iterator[Scene]:
    kinds, colors = ({getattr(group, name) for group in scene.groups} for name in ("kind", "color"))
    for name, place in PLACES.items():
        if name != scene.place and kinds <= set(place.kinds) and not colors & set(place.avoided):
            yield replace(scene, place=name)


def _mirrored(scene: Scene) -> Iterator[Scene]:
    """Left for right, or top for bottom; each thing stands as it did, and only its middle is mirrored."""
    if scene.relation not in OPPOSITES:
        return
    upside_down = scene.relation in ("above", "below")
    groups = []
    for group in scene.groups:
        moved = (replace(t, y=1 - t.y) if upside_down else replace(t, x=1 - t.x) for t in group.things)
        groups.append(replace(group, things=tuple(moved)))
    yield replace(scene, groups=tuple(groups), relation=OPPOSITES[scene.relation])


def _with_group(scene: Scene, number: int, group: Group) -> Scene:
    groups = list(scene.groups)
    groups[number] = group
    return replace(scene, groups=tuple(groups))
