"""Writes the manifest of listed pairs, and the additional files of pairs."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.data.collect import Checked, Checks, Listing, check
from vitcapr.data.images import ImageSource
from vitcapr.data.pairs.sources import LANGUAGES
from vitcapr.data.pairs.split import CATEGORIES, METHOD, choose_pools, classify_caption, commonest, deal, draw
from vitcapr.data.tars import Rejected
from vitcapr.errors import UserError
from vitcapr.files import write_json
from vitcapr.formats.manifest import write_manifest
from vitcapr.formats.pairs import FORMAT, TABLE, write_pair_table, write_pools
from vitcapr.progress import Reporter


@dataclass(frozen=True)
class PairRecipe:
    """How pairs are drawn and split.

    Attributes:
        pairs: so many are drawn for training and validation; None takes all.
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
    """Check every picture, clean every text, split, and write the manifest, ``pairs.parquet, pairs.json, pools.npz``.
    Returns the path of the manifest.

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
    """A row a usable pair, with its picture's class; a class given for one of its pairs goes before derived ones."""
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
    """The pairs that are used, with the column ``split``."""
    apart = set(table["image_id"][table["test"]])
    if not apart:
        apart = draw(table["image_id"].unique(), recipe.test_images, recipe.seed, "test")
    tested = table["image_id"].isin(apart)
    learnt = table[~tested]
    if recipe.pairs is not None:
        learnt = learnt[learnt["caption_id"].isin(draw(learnt["caption_id"], recipe.pairs, recipe.seed, "pairs"))]
    counts = {language: learnt["language"].eq(language).groupby(learnt["image_id"]).sum() for language in LANGUAGES}
    pictures = learnt.drop_duplicates("image_id")[["image_id", "category"]]
    for language, number in counts.items():
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
        mixture = {"languages": _shares(part["language"]), "categories": _shares(part["category"])}
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


def _shares(column: "pd.Series[str]") -> dict[str, float]:
    counts = column.value_counts()
    return {str(name): round(int(counts[name]) / len(column), 6) for name in sorted(counts.index)}
