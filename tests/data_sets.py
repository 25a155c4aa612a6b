"""Small data sets for tests."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image

from vitcapr.files import sha256_file
from vitcapr.formats.captions import Candidate, write_captions
from vitcapr.formats.manifest import write_manifest


def write_data_set(
    folder: Path,
    splits: Mapping[str, str],
    captions: Iterable[tuple[str, str, str]],
    name: str = "toys",
    root: Path | None = None,
    files: str = "{}",
    **tables: Any,
) -> Path:
    """Write the manifest of images, which need no files.

    Args:
        splits: by image id.
        captions: image id, language and text of each, grouped by image.
        root: folder of the images.
        files: names of their files, made of their ids. Files that are there count with their sizes and digests.
    """
    root = root or folder
    images = []
    for image, split in splits.items():
        file = root / files.format(image)
        (width, height), digest = (Image.open(file).size, sha256_file(file)) if file.is_file() else ((4, 4), "0" * 64)
        images.append((image, file.name, split, width, height, digest))
    seen: Counter[str] = Counter()
    rows = []
    for image, language, text in captions:
        rows.append((f"{image}#{seen[image]}", image, language, text, splits[image]))
        seen[image] += 1
    return write_manifest(
        folder,
        dataset=name,
        image_root=root,
        images=pd.DataFrame(images, columns=["image_id", "path", "split", "width", "height", "sha256"]),
        captions=pd.DataFrame(rows, columns=["caption_id", "image_id", "language", "text", "split"]),
        rejected=[],
        **tables,
    )


def write_texts(path: Path, texts: Mapping[str, str]) -> Path:
    """Write a caption of each image as ``decode`` does, without candidates beside it."""
    captioned = []
    for image, text in texts.items():
        words = tuple(text.split())
        log_probs = (-1.0,) * (len(words) + 1)
        one = Candidate(caption=text, tokens=words, token_log_probs=log_probs, log_prob=sum(log_probs), score=-1.0)
        captioned.append((image, [one]))
    write_captions(path, captioned)
    return path
