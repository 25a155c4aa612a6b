"""What a store is made from, as its fingerprint and attributes say it."""

from pathlib import Path

import pandas as pd

from vitcapr.artefacts.manifest import Manifest
from vitcapr.files import canonical_json, sha256_bytes


def source_name(source: str) -> str:
    """The name of a checkpoint: the same on every machine, so never an absolute path."""
    return Path(source).name if Path(source).expanduser().is_absolute() else source


def images_digest(data: Manifest) -> str:
    """Which images, in which order, with which bytes."""
    return _digest(data.images[["image_id", "sha256"]])


def caption_digests(captions: pd.DataFrame) -> list[str]:
    """The digest of the words of each caption."""
    return [sha256_bytes(text.encode("utf-8")) for text in captions["text"]]


def captions_digest(captions: pd.DataFrame) -> str:
    """Which captions, in which order, with which words."""
    return _digest(captions[["caption_id", "text"]])


def _digest(table: pd.DataFrame) -> str:
    return sha256_bytes(canonical_json(table.to_numpy().tolist()).encode("utf-8"))
