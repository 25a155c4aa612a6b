"""What a store is made from, as its fingerprint and attributes say it."""

from pathlib import Path
from typing import Any

import pandas as pd

from vitcapr.encoders.checkpoints import stated_licence
from vitcapr.files import canonical_json, sha256_bytes
from vitcapr.formats.manifest import Manifest


def source_name(source: str) -> str:
    """The name of a checkpoint: the same on every machine, so never an absolute path."""
    return Path(source).name if Path(source).expanduser().is_absolute() else source


def terms_of(data: Manifest, licence: str | None, source: str | None, checkpoint: Path | None) -> dict[str, Any]:
    """Licences and sources, as the attribute ``terms`` of a store has them.

    Args:
        licence, source: of the data set; None if it is not known.
        checkpoint: the folder of the network that computes the features; None if none does.
    """
    terms: dict[str, Any] = {"data": {"name": data.dataset, "licence": licence, "source": source}}
    if checkpoint is not None:
        terms["backbone"] = {"licence": stated_licence(checkpoint)}
    return terms


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
