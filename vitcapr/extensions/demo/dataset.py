"""The data set: picture i of a seed, its captions, its masks, and all of them written to a folder."""

import multiprocessing
import random
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.extensions.demo.lexicon import COLORS, KINDS, LEXICON, PLACES
from vitcapr.extensions.demo.render import render
from vitcapr.extensions.demo.scene import DIRECTIONS, OPPOSITES, Scene, sample_scene, split_of, stream
from vitcapr.extensions.demo.sentences import chinese, english
from vitcapr.extensions.demo.settings import ScenesConfig
from vitcapr.files import sha256_file
from vitcapr.formats.manifest import write_manifest
from vitcapr.progress import Reporter
from vitcapr.workers import depend_on_parent

DATASET = "scenes"
SCENE, DRAWING, ENGLISH, CHINESE = range(4)
COMPRESSION = 3
PART = 128
"""Pictures that take about as long as the start of a process."""
Rows = dict[str, list[dict[str, Any]]]
"""Rows of the tables ``images``, ``captions`` and ``objects``."""


def make_scene(seed: int, index: int, original: int | None = None) -> Scene:
    """Scene ``index`` of the data set ``seed``; with ``original``, a near duplicate of that scene."""
    rng = stream(seed, index, SCENE)
    return sample_scene(rng) if original is None else near_duplicate(make_scene(seed, original), rng)


def original_of(index: int, validation: float, test: float) -> int | None:
    """Return the picture that picture ``index`` is a near duplicate of.

    Every second picture of a held-out split is one of the picture before it in that split. The others, and all of the
    train split, are none.
    """
    split, number = split_of(index, validation, test)
    if split == "train" or number % 2 == 0:
        return None
    return next(other for other in range(index - 1, -1, -1) if split_of(other, validation, test)[0] == split)


def write_scenes(
    directory: Path,
    scenes: ScenesConfig,
    processes: int,
    reporter: Reporter,
    *,
    near_duplicates: bool = True,
    withdrawn: Collection[str] = (),
) -> Path:
    """Render pictures into ``directory/pictures`` and ``directory/masks`` and write the manifest.

    With ``near_duplicates``, the pictures that :func:`original_of` names are near duplicates. Pictures whose ids are
    ``withdrawn`` are left out.

    The pictures stand unsealed until the manifest, written last, names their checksums. Memory holds the tables, not
    the pictures.

    Returns:
        The path of ``manifest.json``.
    """
    for folder in ("pictures", "masks"):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    write = partial(_write_part, directory, scenes, near_duplicates)
    parts = [range(start, min(start + PART, scenes.images)) for start in range(0, scenes.images, PART)]
    tables: Rows = {"images": [], "captions": [], "objects": []}
    with reporter.track("scenes", scenes.images, "pictures") as tracker, mapped(write, parts, processes) as results:
        for rows in results:
            for name, table in tables.items():
                table.extend(rows[name])
            tracker.advance(len(rows["images"]))
    images, captions, objects = map(pd.DataFrame, tables.values())
    kept = ~images["image_id"].isin(list(withdrawn)).to_numpy()
    for name in images["path"][~kept].map(lambda path: Path(path).name):
        for folder in ("pictures", "masks"):
            (directory / folder / name).unlink()
    captions = captions[kept[captions["image_row"]]]
    captions = captions.assign(image_row=(np.cumsum(kept) - 1)[captions["image_row"]])
    images, objects = images[kept], objects[~objects["image_id"].isin(list(withdrawn))]
    return write_manifest(
        directory,
        dataset=DATASET,
        image_root=directory,
        images=images,
        captions=captions,
        objects=objects,
        rejected=[],
    )


@contextmanager
def mapped(write: Callable[[range], Rows], parts: Sequence[range], processes: int) -> Iterator[Iterator[Rows]]:
    """``write`` of each of ``parts`` in this order; of several, in processes.

    Args:
        write: a function that can be pickled.

    Raises:
        UserError: a process was killed.
        Exception: what ``write`` raised.
    """
    count = min(processes, len(parts))
    if count <= 1:
        yield map(write, parts)
        return
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), depend_on_parent)
    try:
        # The pool hangs if a process is killed while requests are added, so they are few and added before a process
        # has begun; pool.map would hang later, too: it cancels requests that the pool then fails.
        futures = deque(pool.submit(write, part) for part in parts)
        yield (futures.popleft().result() for _ in parts)
    except BrokenProcessPool as error:
        raise UserError(
            "a process that rendered pictures was killed",
            remedy="run it again; if memory ran out, with fewer CPU cores (taskset) or with more memory",
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _write_part(directory: Path, scenes: ScenesConfig, near_duplicates: bool, numbers: range) -> Rows:
    """Write some pictures and their masks; their rows of the three tables."""
    rows: Rows = {"images": [], "captions": [], "objects": []}
    seed = scenes.seed
    for index in numbers:
        scene = make_scene(seed, index, original_of(index, scenes.validation, scenes.test) if near_duplicates else None)
        image_id, path, mask = f"scene-{index:07d}", f"pictures/{index:07d}.png", f"masks/{index:07d}.png"
        for name, drawn in zip((path, mask), render(scene, scenes.size, stream(seed, index, DRAWING)), strict=True):
            drawn.save(directory / name, compress_level=COMPRESSION)
        rows["images"].append(
            {
                "image_id": image_id,
                "path": path,
                "split": split_of(index, scenes.validation, scenes.test)[0],
                "width": scenes.size,
                "height": scenes.size,
                "sha256": sha256_file(directory / path),
            }
        )
        texts = {"en": english(scene, stream(seed, index, ENGLISH)), "zh": chinese(scene, stream(seed, index, CHINESE))}
        rows["captions"] += [
            {"caption_id": f"{image_id}-{language}-{number}", "image_row": index, "language": language, "text": text}
            for language, written in texts.items()
            for number, text in enumerate(written)
        ]
        groups = [group for group in scene.groups for _ in group.things]
        rows["objects"] += [
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
    return rows


def near_duplicate(scene: Scene, rng: random.Random) -> Scene:
    """``scene`` with the colour or the texture of one group, the place or the side changed; each is as likely.

    A retriever that knows only what is in a picture, and not of which colour, with which texture, where or on which
    side, takes one for the other.
    """
    kinds, colors = ({getattr(group, name) for group in scene.groups} for name in ("kind", "color"))
    taken, numbers = colors | set(PLACES[scene.place].avoided), range(len(scene.groups))
    textures = [(n, name) for n in numbers for name in LEXICON.textures if name != scene.groups[n].texture]
    places = [
        name
        for name, place in PLACES.items()
        if name != scene.place and kinds <= set(place.kinds) and not colors & set(place.avoided)
    ]
    ways = [
        [_with_group(scene, number, color=color) for number in numbers for color in COLORS if color not in taken],
        [_with_group(scene, number, texture=texture) for number, texture in textures],
        [replace(scene, place=place) for place in places],
        [_mirrored(scene)] if scene.relation in (*DIRECTIONS, "on_left", "on_right") else [],
    ]
    return rng.choice(rng.choice([scenes for scenes in ways if scenes]))


def _with_group(scene: Scene, number: int, **look: Any) -> Scene:
    groups = list(scene.groups)
    groups[number] = replace(groups[number], **look)
    return replace(scene, groups=tuple(groups))


def _mirrored(scene: Scene) -> Scene:
    """Left for right, or top for bottom; each thing stands as it did, and only its middle is mirrored."""
    upside_down = scene.relation in ("above", "below")
    groups = []
    for group in scene.groups:
        moved = (replace(t, y=1 - t.y) if upside_down else replace(t, x=1 - t.x) for t in group.things)
        groups.append(replace(group, things=tuple(moved)))
    return replace(scene, groups=tuple(groups), relation=OPPOSITES[scene.relation])
