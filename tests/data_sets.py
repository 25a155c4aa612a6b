"""Small data sets for tests."""

import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from vitcapr.files import sha256_file
from vitcapr.formats.captions import Candidate, write_captions
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest, write_manifest
from vitcapr.formats.tokens import TokenTable


def write_data_set(
    folder: Path,
    splits: Mapping[str, str],
    captions: Iterable[tuple[str, str, str]],
    name: str = "toys",
    root: Path | None = None,
    files: Callable[[str], str] = str,
    **tables: Any,
) -> Path:
    """Write the manifest of images, which need no files.

    Args:
        splits: by image id.
        captions: image id, language and text of each, grouped by image.
        root: folder of the images.
        files: the name of the file of an id. Files that are there count with their sizes and digests.
    """
    root = root or folder
    images = []
    for image, split in splits.items():
        file = root / files(image)
        (width, height), digest = (Image.open(file).size, sha256_file(file)) if file.is_file() else ((4, 4), "0" * 64)
        images.append((image, files(image), split, width, height, digest))
    seen: Counter[str] = Counter()
    rows, row_of = [], {image: row for row, image in enumerate(splits)}
    for image, language, text in captions:
        rows.append((f"{image}#{seen[image]}", row_of[image], language, text))
        seen[image] += 1
    return write_manifest(
        folder,
        dataset=name,
        image_root=root,
        images=pd.DataFrame(images, columns=["image_id", "path", "split", "width", "height", "sha256"]),
        captions=pd.DataFrame(rows, columns=["caption_id", "image_row", "language", "text"]),
        rejected=[],
        **tables,
    )


def coco_captions(files: Mapping[int, str], texts: Mapping[int, Sequence[str]]) -> dict[str, Any]:
    """An annotation file of COCO. ``files`` has the names of the images' files."""
    captions = [
        {"id": 10 * image + number, "image_id": image, "caption": text}
        for image, several in texts.items()
        for number, text in enumerate(several)
    ]
    return {"images": [{"id": image, "file_name": name} for image, name in files.items()], "annotations": captions}


def encoded(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    """The bytes of a picture file."""
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def rewrite(data: Manifest, folder: Path, **tables: Any) -> Path:
    """Write the data set with other tables in the place of its own."""
    whole = {"images": data.images, "captions": data.captions, "rejected": [], **tables}
    return write_manifest(folder, dataset=data.dataset, image_root=data.image_root, **whole)


def write_noise(folder: Path, names: Sequence[str]) -> None:
    """Pictures of noise, of several sizes."""
    draw = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        pixels = draw.integers(0, 256, (18 + number % 5, 20 + number % 7, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / name)


def write_texts(path: Path, texts: Mapping[str, str]) -> Path:
    """Write a caption of each image as ``decode`` does, without candidates beside it."""
    write_captions(path, [(image, [candidate(text)]) for image, text in texts.items()])
    return path


def candidate(text: str, log_prob: float = -1.0, **more: float) -> Candidate:
    """A caption whose words, and its end, have this log-probability each."""
    words = tuple(text.split())
    log_probs = (log_prob,) * (len(words) + 1)
    values = {"log_prob": sum(log_probs), "score": 0.0, **more}
    return Candidate(caption=text, tokens=words, token_log_probs=log_probs, **values)


def angles(*degrees: float) -> NDArray[np.float32]:
    """Unit vectors in the plane."""
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def embeddings_of(images: Sequence[Any], captions: Sequence[Any], owner: Sequence[int]) -> Embeddings:
    """Those of all images and captions of a data set; ``owner`` has the image of each caption."""
    vectors = (np.asarray(side, np.float32) for side in (images, captions))
    rows = (np.asarray(places, np.int32) for places in (range(len(images)), range(len(captions)), owner))
    return Embeddings(*vectors, *rows)


def token_table(captions: Sequence[Sequence[int]], image_row: Sequence[int], caption_row: Sequence[int]) -> TokenTable:
    """One list of word numbers a caption."""
    ids = np.array([number for caption in captions for number in caption], np.int32)
    offsets = np.cumsum([0, *map(len, captions)], dtype=np.int64)
    return TokenTable(ids, offsets, np.asarray(image_row, np.int32), np.asarray(caption_row, np.int32))
