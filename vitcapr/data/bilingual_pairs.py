"""Pairs in two languages: from a table with pictures or paths, or from data sets captioned in both.

Writes their manifest and the additional files of pairs.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.data.archive import OddRow, Rejected
from vitcapr.data.collect import Checked, Checks, ListedCaption, ListedImage, Listing, caption_columns, check
from vitcapr.data.flickr8k import list_images, read_chinese
from vitcapr.data.images import ImageSource
from vitcapr.data.pair_splits import CATEGORIES, METHOD, choose_pools, classify_caption, commonest, deal, draw
from vitcapr.data.rows import Columns, Row, captions_of, read_rows
from vitcapr.data.table import USUAL
from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes, write_json
from vitcapr.formats.containers import take_rows
from vitcapr.formats.manifest import Manifest, write_manifest
from vitcapr.formats.pair_files import FORMAT, TABLE, write_pair_table, write_pools
from vitcapr.progress import Reporter

LANGUAGES = ("en", "zh")
NAMES = {"text": ("text", "caption"), **{name: USUAL[name] for name in ("image", "language", "split")}}
"""The names that a column may have; that of ``category`` is fixed."""
PICTURES = "pictures"
"""The folder of the pictures that are unpacked from a table."""
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def detect_language(text: str) -> str:
    """``zh`` where there is a Han character, else ``en``: the two languages differ in script."""
    return "zh" if _HAN.search(text) else "en"


def list_table(file: Path, *, images: Path, encoded: bool, unpack_to: Path) -> tuple[Listing, Path]:
    """Return the pairs of a table, in its order, and the root of its images.

    The split of an image is ``test`` if one of its rows says so, else ``none``.

    A caption's id is ``row-`` and its number. A picture's id is its path; of a picture inside the table, the digest of
    its bytes, so that the same picture in two rows is one.

    Args:
        images: the folder or zip of the pictures, where the table has their paths.
        encoded: the image column holds Base64 and not paths. Bytes, which Parquet can hold, are taken as they are.
        unpack_to: receives the pictures that the table holds itself.
    """
    existing: set[str] = set()
    if not encoded:
        with ImageSource(images) as source:
            existing = set(source.files())
    listed: dict[str, ListedImage] = {}
    captions: list[ListedCaption] = []
    rejected: Rejected = []
    table_columns = Columns({**NAMES, "category": ("category",)}, needed=("text", "image"))
    for row in read_rows(file, table_columns, rejected, key="data.pairs.table"):
        if not (texts := captions_of(row.cells.get("text"), row.place, rejected)):
            continue
        try:
            text, *more = texts
            if more:
                raise TypeError("a list of captions: a pair has one")
            language = row.text("language") or detect_language(text)
            if language not in LANGUAGES:
                raise ValueError(f"language '{language}' is neither en nor zh")
            image_id, path = _place(row, encoded, existing, unpack_to)
        except (ValueError, TypeError) as error:
            rejected.append((row.place, OddRow(error)))
            continue
        if image_id not in listed or row.text("split") == "test":
            listed[image_id] = ListedImage(image_id, path, "test" if row.text("split") == "test" else "none")
        category = row.text("category") or None
        captions.append(ListedCaption(f"row-{row.number}", image_id, text, language, category))
    unpacked = encoded or any(image.path not in (None, image.image_id) for image in listed.values())
    return Listing.from_records(listed.values(), captions, rejected), unpack_to if unpacked else images


def _place(row: Row, encoded: bool, existing: set[str], unpack_to: Path) -> tuple[str, str | None]:
    """Return the id and the path of the picture of a row, which is unpacked if the row holds its bytes or its Base64.

    Base64 may be a ``data:`` URL, and broken into lines.
    """
    image: Any = row.cells.get("image")
    content = image.get("bytes") if isinstance(image, dict) else image
    if isinstance(content, str) and encoded and content:
        body = content.partition("base64,")[2] if content.startswith("data:") else content
        try:
            content = base64.b64decode("".join(body.split()), validate=True)
        except ValueError as error:
            raise ValueError("not Base64") from error
    if isinstance(content, bytes) and content:
        digest = sha256_bytes(content)
        file = unpacked_picture(unpack_to, digest)
        file.parent.mkdir(parents=True, exist_ok=True)
        # A half-written picture is noticed: the manifest, written last, names the digest.
        file.write_bytes(content)
        return digest, file.relative_to(unpack_to).as_posix()
    if encoded or not (name := row.name("image")):
        raise ValueError("no picture")
    image_id = name.replace("\\", "/").removeprefix("./")
    return image_id, image_id if image_id in existing else None


def unpacked_picture(folder: Path, digest: str) -> Path:
    """Return the file of a picture that was unpacked from a table, by the SHA-256 of its bytes."""
    return folder / PICTURES / digest[:2] / digest


def pairs_of_flickr8k(images: Path, text: Path, chinese: Path, *, splits: str) -> Listing:
    """Return Flickr8k with its English and its human Chinese captions (Flickr8k-CN).

    English comes before Chinese, each in the order of its file. The official test photographs are set apart.
    """
    with ImageSource(images) as source:
        listing = list_images(source, source.files(), text=str(text), splits=splits)
    translated, rejected = read_chinese(chinese)
    columns = [listing.captions.assign(language="en"), caption_columns(translated, listing.images)]
    captions = pd.concat(columns, ignore_index=True)
    # An image of the split lists alone has no pair.
    captioned = captions["image_row"][captions["image_row"] >= 0].unique()
    row = np.full(len(listing.images) + 1, -1)
    row[captioned] = np.arange(len(captioned))
    captions = captions.assign(image_row=row[captions["image_row"]])
    return Listing(_apart(take_rows(listing.images, captioned)), captions, [*listing.rejected, *rejected])


def manifest_pairs(data: Manifest) -> Listing:
    """Return the captions of a manifest in both languages; its test split is set apart."""
    captions = data.captions[["caption_id", "image_row", "text", "language"]].assign(category=None)
    return Listing(_apart(data.images[["image_id", "path", "split"]]), captions)


def _apart(images: pd.DataFrame) -> pd.DataFrame:
    """Return the images with the test split set apart; other splits are dropped."""
    return images.assign(split=images["split"].where(images["split"] == "test", "none"))


@dataclass(frozen=True)
class PairRecipe:
    """Drawing and splitting of pairs.

    Attributes:
        pairs: number of pairs drawn for training and validation; None takes all.
        validation: the share of the pictures of these.
        test_images: pictures set apart where the source sets none apart.
        queries, candidates: of each direction, from the pictures set apart.
        distractors: splits that fill up the candidates.
    """

    pairs: int | None
    validation: float
    test_images: int
    queries: int
    candidates: int
    seed: int
    distractors: Sequence[str] = ()


def write_pairs(
    directory: Path,
    listing: Listing,
    source: ImageSource,
    *,
    clean: Callable[[str, str], str],
    recipe: PairRecipe,
    checks: Checks,
    reporter: Reporter,
) -> Path:
    """Check every picture, clean every text, split, and write the manifest and the files of pairs.

    The files are ``pairs.parquet``, ``pairs.json`` and ``pools.npz``. Returns the path of the manifest.

    Two files with the same bytes are one picture: the captions of the second become the first one's.

    Args:
        listing: captions with their languages; the split of an image is ``test`` or ``none``.
        clean: (text, language) -> the text that is learnt, empty if nothing is left of it.
    """
    checked = check(listing, source, checks, reporter, join_copies=True)
    refused = checked.rejected
    table = _table(checked, clean, refused)
    if table.empty:
        raise UserError("no pair is left in the data set", where=directory, remedy="rejected.csv of a run says why")
    table = _split(table, recipe)
    split_of = dict(zip(table["image_id"], table["split"], strict=True))
    images = checked.images.assign(split=checked.images["image_id"].map(split_of)).dropna()
    if set(split_of.values()) == {"test"}:
        what, remedy = f"the test split has all {len(split_of)} images", "lower data.pairs.test_images, or add images"
        raise UserError(what, where=directory, remedy=remedy)
    _write_beside(directory, table, recipe, reporter)
    rows = images.index.get_indexer(pd.Index(table["image_row"]))
    return write_manifest(
        directory,
        dataset="pairs",
        image_root=source.root,
        images=images,
        captions=table[["caption_id", "language", "text"]].assign(image_row=rows),
        rejected=refused,
        decoders=checked.decoders,
    )


def _table(checked: Checked, clean: Callable[[str, str], str], refused: Rejected) -> pd.DataFrame:
    """Return each usable pair with the class of its picture: one given for any of its pairs, else a derived one."""
    captions = checked.captions
    owners = checked.images[["image_id", "split"]].iloc[captions["image_row"]].reset_index(drop=True)
    texts = [clean(*each) for each in zip(captions["text"], captions["language"], strict=True)]
    table = captions.rename(columns={"text": "raw"}).assign(
        text=texts, image_id=owners["image_id"], test=owners["split"] == "test"
    )
    emptied = table["text"] == ""
    refused += [(each, "nothing left of the caption after cleaning") for each in table["caption_id"][emptied]]
    table = table[~emptied].reset_index(drop=True)
    derived = [classify_caption(*each) for each in zip(table["raw"], table["language"], strict=True)]
    own, row = table["category"], table["image_row"]
    counted = own.where(own.groupby(row).transform("count") > 0, pd.Series(derived, dtype="str"))
    return table.assign(category=counted.groupby(row).transform(lambda each: commonest(each.dropna())))


def _split(table: pd.DataFrame, recipe: PairRecipe) -> pd.DataFrame:
    """Return the pairs that are used, with the column ``split``."""
    apart = set(table["image_id"][table["test"]])
    if not apart:
        apart = draw(table["image_id"].unique(), recipe.test_images, recipe.seed, "test")
    tested = table["image_id"].isin(apart)
    learnt = table[~tested]
    if recipe.pairs is not None:
        learnt = learnt[learnt["caption_id"].isin(draw(learnt["caption_id"], recipe.pairs, recipe.seed, "pairs"))]
    pictures = learnt.drop_duplicates("image_id")[["image_id", "category"]]
    for language in LANGUAGES:
        number = learnt["language"].eq(language).groupby(learnt["image_id"]).sum()
        pictures = pictures.assign(**{language: pictures["image_id"].map(number)})
    split_of = deal(pictures, recipe.validation, recipe.seed) | dict.fromkeys(apart, "test")
    used = pd.concat([learnt, table[tested]]).sort_index()
    return used.assign(split=used["image_id"].map(split_of))


def _write_beside(directory: Path, table: pd.DataFrame, recipe: PairRecipe, reporter: Reporter) -> None:
    write_pair_table(directory / TABLE, table)
    rows = table.assign(caption_row=np.arange(len(table)), image_row=pd.factorize(table["image_id"])[0])
    by_split = {split: rows[rows["split"] == split] for split in ("test", *recipe.distractors)}
    pools = choose_pools(
        by_split.pop("test"), recipe.queries, recipe.candidates, recipe.seed, distractors=list(by_split.values())
    )
    write_pools(directory / "pools.npz", pools)
    shares: dict[str, Any] = {}
    for split, part in table.groupby("split"):
        columns = {"languages": part["language"], "categories": part["category"]}
        mixture = {
            name: column.value_counts(normalize=True).sort_index().round(6).to_dict()
            for name, column in columns.items()
        }
        shares[str(split)] = {"pairs": len(part), "images": part["image_id"].nunique(), **mixture}
    ids = "\n".join(f"{a} {b}" for a, b in zip(table["caption_id"], table["split"], strict=True))
    write_json(
        directory / "pairs.json",
        {
            "format": FORMAT,
            "seed": recipe.seed,
            "split": "whole pictures, stratified by category and by captions of each language; no picture on two sides",
            "splits": shares,
            "categories": {"method": METHOD, "names": list(CATEGORIES)},
            "pools": {name: len(rows) for name, rows in pools._asdict().items()},
            "drawn_sha256": hashlib.sha256(ids.encode()).hexdigest(),
        },
    )
    for split, mixture in shares.items():
        languages = ", ".join(f"{share:.1%} {name}" for name, share in mixture["languages"].items())
        reporter.line(f"{split}: {mixture['pairs']} pairs of {mixture['images']} pictures, {languages}")
