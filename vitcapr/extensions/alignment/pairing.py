"""Assigns captions to images by the ids of two stores, and selects the held-out images."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from vitcapr.errors import UserError
from vitcapr.formats.containers import read_parquet
from vitcapr.formats.manifest import Manifest

_SPLITS = ("train", "validation", "test")
_HELD_OUT = {"test": 0.1, "validation": 0.05}
"""Shares of the splits, if the table defines none."""


@dataclass(frozen=True)
class Pairing:
    """The captions that are used, grouped by image in the order of the images' rows.

    Attributes:
        caption_row, image_row: (M,) rows of the text store and of the image store.
        splits: ``train``, ``validation`` and ``test`` -> rows of images, increasing.
        captions: the texts, M of them, if they are known.
    """

    caption_row: np.ndarray
    image_row: np.ndarray
    splits: dict[str, np.ndarray]
    captions: list[str] | None = None


def pair_by_id(image_ids: list[str], caption_ids: list[str], seed: int) -> Pairing:
    """Pair by id: the id of a caption is the id of its image, with or without a suffix: ``dog.jpg#2``."""
    images = [name if "#" not in name else name.rpartition("#")[0] for name in caption_ids]
    return _paired(pd.DataFrame({"image_id": images, "caption_id": caption_ids}), image_ids, caption_ids, seed, None)


def pair_by_file(path: Path, image_ids: list[str], caption_ids: list[str], seed: int) -> Pairing:
    """Pair by a Parquet or CSV file with the columns ``image_id``, ``caption_id`` and perhaps ``split`` and ``text``.

    Rows of the split ``none`` are left out.

    Raises:
        UserError: the file is no such table, or a store does not have one of its ids.
    """
    try:
        if path.suffix == ".parquet":
            table = read_parquet(path).to_pandas(use_threads=False)
        else:
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise UserError("not a table of pairs", where=path, remedy=f"give Parquet or CSV ({error})") from error
    if not {"image_id", "caption_id"} <= set(table.columns):
        columns = ", ".join(map(str, table.columns))
        raise UserError("a table of pairs has image_id and caption_id", where=path, remedy=f"it has {columns}")
    if "split" in table.columns:
        table = table[table["split"] != "none"]
    return _paired(table, image_ids, caption_ids, seed, path)


def pair_by_manifest(data: Manifest, language: str) -> Pairing:
    """Return the captions of a language and the splits of a data set, whose rows are those of its stores.

    Raises:
        UserError: a split has no captions.
    """
    table = data.captions_of(language=language)
    table = table[table["split"].isin(_SPLITS)]
    splits = {name: np.unique(table["image_row"][table["split"] == name]) for name in _SPLITS}
    for name, rows in splits.items():
        if not len(rows):
            raise UserError(f"no captions of the split {name}", where=data.dataset, remedy="give it some images")
    return Pairing(table["caption_row"].to_numpy(), table["image_row"].to_numpy(), splits, table["text"].tolist())


def _paired(
    table: pd.DataFrame, image_ids: list[str], caption_ids: list[str], seed: int, where: Path | None
) -> Pairing:
    image_row = _rows(table["image_id"], image_ids, "image", where)
    caption_row = _rows(table["caption_id"], caption_ids, "caption", where)
    order = np.lexsort((caption_row, image_row))
    if "split" not in table.columns:
        splits = {"train": np.unique(image_row)}
    else:
        if wrong := set(table["split"]) - set(_SPLITS):
            raise UserError(f"no split is called '{min(map(str, wrong))}'", where=where, remedy=f"use {_SPLITS}")
        parts = {name: (table["split"] == name).to_numpy() for name in _SPLITS}
        splits = {name: np.unique(image_row[part]) for name, part in parts.items() if part.any()}
        if sum(map(len, splits.values())) > len(np.unique(image_row)):
            raise UserError("an image is in two splits", where=where, remedy="give an image one split")
    captions = table["text"].fillna("").iloc[order].tolist() if "text" in table.columns else None
    return Pairing(caption_row[order], image_row[order], _complete(splits, seed, where), captions)


def _rows(names: "pd.Series[str]", ids: list[str], what: str, where: Path | None) -> np.ndarray:
    rows = pd.Index(ids).get_indexer(pd.Index(names))
    if (rows < 0).any():
        missing = names.iloc[int((rows < 0).argmax())]
        remedy = "name those of the stores" if where else "say with --pairs which caption belongs to which image"
        raise UserError(f"no {what} of the store is called '{missing}'", where=where, remedy=remedy)
    return np.asarray(rows, np.int64)


def _complete(splits: dict[str, np.ndarray], seed: int, where: Path | None) -> dict[str, np.ndarray]:
    """Move random training images to the test and validation splits, if these are missing."""
    draw = np.random.default_rng(seed)
    if "train" not in splits:
        raise UserError("no pair is for training", where=where, remedy="give some the split 'train'")
    shares = {name: share for name, share in _HELD_OUT.items() if name not in splits}
    left = draw.permutation(splits["train"])
    counts = {name: max(2, round(share * len(left))) for name, share in shares.items()}
    for name, count in counts.items():
        splits[name], left = np.sort(left[:count]), left[count:]
    if len(left) < 2:
        raise UserError("too few images to train on", where=where, remedy="give more pairs")
    splits["train"] = np.sort(left)
    return splits
