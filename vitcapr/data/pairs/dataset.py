"""Writes the manifest of listed pairs, and the additional files of pairs."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from vitcapr.data.collect import OnBadImage, Rejected, one_line
from vitcapr.data.images import BadImage, ImageFacts, ImageSource, inspect_all
from vitcapr.data.pairs.split import CATEGORIES, METHOD, category_of, choose_pools, commonest, deal, draw
from vitcapr.data.pairs.table import LANGUAGES, Pair
from vitcapr.errors import UserError
from vitcapr.formats.manifest import write_manifest
from vitcapr.formats.pairs import TABLE, write_pair_card, write_pair_table, write_pools
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
    pairs: Sequence[Pair],
    source: ImageSource,
    *,
    rejected: Rejected,
    clean: Callable[[str, str], str],
    recipe: PairRecipe,
    max_pixels: int,
    on_bad_image: OnBadImage,
    reporter: Reporter,
) -> Path:
    """Check every picture, clean every text, split, and write the manifest, ``pairs.parquet, pairs.json, pools.npz``.
    Returns the path of the manifest.

    Two files with the same bytes are one picture: the captions of the second become the first one's.

    Args:
        clean: (text, language) -> the text that is learnt, empty if nothing is left of it.
    """
    refused = list(rejected)
    facts, first_of = _pictures(pairs, source, refused, max_pixels, on_bad_image, reporter)
    table = _table(pairs, first_of, clean, refused)
    if table.empty:
        raise UserError("no pair is left in the data set", where=directory, remedy="rejected.csv of a run says why")
    table = _split(table, recipe)
    order = {image_id: place for place, image_id in enumerate(facts)}
    table = table.assign(order=table["image_id"].map(order)).sort_values("order", kind="stable", ignore_index=True)
    images = pd.DataFrame(
        [
            (name, path, split, checked.width, checked.height, checked.sha256)
            for name, split in dict(zip(table["image_id"], table["split"], strict=True)).items()
            for path, checked in [facts[name]]
        ],
        columns=["image_id", "path", "split", "width", "height", "sha256"],
    )
    _write_beside(directory, table, recipe, reporter)
    return write_manifest(
        directory,
        dataset="pairs",
        image_root=source.root,
        images=images,
        captions=table[["caption_id", "image_id", "language", "text", "split"]],
        rejected=refused,
    )


def _pictures(
    pairs: Sequence[Pair],
    source: ImageSource,
    refused: Rejected,
    max_pixels: int,
    on_bad_image: OnBadImage,
    reporter: Reporter,
) -> tuple[dict[str, tuple[str, ImageFacts]], dict[str, str]]:
    """Path and facts of each picture, and the picture that each listed image id stands for."""

    def refuse(item: str, image_id: str, reason: str) -> None:
        if on_bad_image == "fail":
            raise UserError(f"image '{image_id}': {reason}", where=source.root)
        refused.append((item, reason))

    paths: dict[str, str] = {}
    for pair in pairs:
        if pair.path is None:
            refuse(pair.caption_id, pair.image_id, f"no such file: {pair.image_id}")
        else:
            paths.setdefault(pair.image_id, pair.path)
    facts: dict[str, tuple[str, ImageFacts]] = {}
    first_of: dict[str, str] = {}
    first_with: dict[str, str] = {}
    with closing(inspect_all(source, list(paths.values()), max_pixels, reporter)) as inspected:
        for (image_id, path), checked in zip(paths.items(), inspected, strict=True):
            if isinstance(checked, BadImage):
                refuse(image_id, image_id, checked.reason)
            else:
                first_of[image_id] = first_with.setdefault(checked.sha256, image_id)
                facts.setdefault(first_of[image_id], (path, checked))
    if twins := len(first_of) - len(facts):
        reporter.line(f"{twins} files hold the picture of another file; their captions are given to that")
    return facts, first_of


def _table(
    pairs: Sequence[Pair], first_of: dict[str, str], clean: Callable[[str, str], str], refused: Rejected
) -> pd.DataFrame:
    """A row a usable pair, with its picture's class; a class given for one of its pairs goes before derived ones."""
    rows, seen = [], set()
    classes: dict[str, list[str]] = defaultdict(list)
    given: dict[str, list[str]] = defaultdict(list)
    for pair in pairs:
        if pair.image_id not in first_of:
            if pair.path is not None:
                refused.append((pair.caption_id, "caption of an image left out"))
            continue
        raw = one_line(pair.text)
        text = clean(raw, pair.language)
        if pair.caption_id in seen:
            refused.append((pair.caption_id, "duplicate caption id"))
        elif not text:
            what = "nothing left of the caption after cleaning" if raw else "empty caption"
            refused.append((pair.caption_id, what))
        else:
            image_id = first_of[pair.image_id]
            rows.append((pair.caption_id, image_id, pair.language, text, raw, pair.test))
            (given if pair.category else classes)[image_id].append(pair.category or category_of(raw, pair.language))
        seen.add(pair.caption_id)
    table = pd.DataFrame(rows, columns=["caption_id", "image_id", "language", "text", "raw", "test"])
    names = {image_id: commonest(given.get(image_id) or classes[image_id]) for image_id in table["image_id"].unique()}
    return table.assign(category=table["image_id"].map(names))


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
    write_pair_card(
        directory / "pairs.json",
        {
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
