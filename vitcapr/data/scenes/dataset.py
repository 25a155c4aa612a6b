"""The data set: picture i of a seed, its captions, its masks, and all of them written to a folder."""

import io
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from vitcapr.artefacts.manifest import write_manifest
from vitcapr.data.scenes import chinese, english
from vitcapr.data.scenes.lexicon import KINDS
from vitcapr.data.scenes.render import render
from vitcapr.data.scenes.scene import Scene, sample_scene, stream
from vitcapr.files import sha256_bytes
from vitcapr.progress import Reporter

DATASET = "scenes"
SCENE, DRAWING, ENGLISH, CHINESE = range(4)
TASK = 16
COMPRESSION = 3


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


def make_picture(seed: int, index: int, size: int) -> Rendered:
    """Picture ``index`` of the data set ``seed``: the same bytes whatever the number of pictures and processes."""
    scene = sample_scene(stream(seed, index, SCENE))
    picture, mask = render(scene, size, stream(seed, index, DRAWING))
    texts = {
        "en": english.captions(scene, stream(seed, index, ENGLISH)),
        "zh": chinese.captions(scene, stream(seed, index, CHINESE)),
    }
    return Rendered(scene, _png(picture), _png(mask), texts)


def split_of(index: int, validation: float, test: float) -> str:
    """The split of picture ``index``, the same for any number of pictures.

    Pictures are independent of each other, so their positions serve: with shares of a tenth each, every fifth
    picture is held out, for the two splits in turn. Any ten pictures in a row then have some of each.
    """
    held_out = Fraction(str(validation)) + Fraction(str(test))
    before = int(index * held_out)
    if int((index + 1) * held_out) == before:
        return "train"
    share = Fraction(str(test)) / held_out
    return "test" if int((before + 1) * share) > int(before * share) else "validation"


def write_scenes(
    directory: Path,
    *,
    images: int,
    size: int,
    seed: int,
    validation: float,
    test: float,
    processes: int,
    reporter: Reporter,
) -> Path:
    """Render ``images`` pictures into ``directory/pictures`` and ``directory/masks`` and write the manifest.

    The pictures stand unsealed until the manifest, written last, names their checksums. Memory holds the tables and
    the pictures in flight, not the pictures.

    Returns:
        The path of ``manifest.json``.
    """
    for folder in ("pictures", "masks"):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    make = partial(_write_picture, directory, size, seed, validation, test)
    tables: dict[str, list[dict[str, Any]]] = {"images": [], "captions": [], "objects": []}
    with reporter.track("scenes", images, "pictures") as tracker, _mapped(make, images, processes) as results:
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
def _mapped(make: Any, number: int, processes: int) -> Iterator[Iterator[dict[str, list[dict[str, Any]]]]]:
    """``make`` of 0 to ``number - 1`` in this order, in this process or in several."""
    if processes <= 1 or number <= 2 * TASK:
        yield map(make, range(number))
        return
    with multiprocessing.get_context("spawn").Pool(min(processes, number // TASK)) as pool:
        yield pool.imap(make, range(number), chunksize=TASK)


def _write_picture(
    directory: Path, size: int, seed: int, validation: float, test: float, index: int
) -> dict[str, list[dict[str, Any]]]:
    """Write one picture and its mask; its rows of the three tables."""
    rendered = make_picture(seed, index, size)
    image_id, split = f"scene-{index:07d}", split_of(index, validation, test)
    path, mask = f"pictures/{index:07d}.png", f"masks/{index:07d}.png"
    (directory / path).write_bytes(rendered.picture)
    (directory / mask).write_bytes(rendered.mask)
    image = {
        "image_id": image_id,
        "path": path,
        "split": split,
        "width": size,
        "height": size,
        "sha256": sha256_bytes(rendered.picture),
    }
    captions = [
        {
            "caption_id": f"{image_id}-{language}-{number}",
            "image_id": image_id,
            "language": language,
            "text": text,
            "split": split,
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
        }
        for number, group in enumerate(groups)
    ]
    return {"images": [image], "captions": captions, "objects": objects}


def _png(image: Image.Image) -> bytes:
    stream_ = io.BytesIO()
    image.save(stream_, "PNG", compress_level=COMPRESSION)
    return stream_.getvalue()
