"""Results of one split of several experiments, for the explorer.

They are captions with scores, embeddings with ranks, audits, and the images and references of all, each with one
number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vitcapr.errors import UserError
from vitcapr.formats.caption_audit import read_audit
from vitcapr.formats.captions import AttentionTable, DecodedCaption, read_attention, read_captions
from vitcapr.formats.claims import Claim, read_claims
from vitcapr.formats.embeddings import Embeddings, read_embeddings
from vitcapr.formats.manifest import Manifest, check_split, read_manifest
from vitcapr.formats.scores import RankFile, Ranks, Score, read_comparison, read_metrics, read_per_image, read_summary
from vitcapr.metrics.caption_metric import is_oracle

Numbers = NDArray[np.int64]
ABSENT = -1
_RECALL = ("i2t_recall_1", "t2i_recall_1")
_REMEDY = "give the folder of an experiment that has run: results/NAME"


@dataclass(frozen=True, eq=False)
class System:
    """The captions of one decoding or reranking of a captioner.

    Attributes:
        base: the decoding whose captions a reranking reorders; empty for a decoding.
        oracle: whether the references chose the captions.
        captions, claims: by image id; no claims where they cannot be checked.
        scores: of the whole split, by metric.
        per_image: a row for each scored image, the index is the image id; None if the captions are not scored.
        attention: of the best captions, where the experiment stored it.
    """

    model: str
    decoding: str
    base: str
    oracle: bool
    captions: Mapping[str, DecodedCaption]
    scores: Mapping[str, Score]
    per_image: pd.DataFrame | None
    claims: Mapping[str, Sequence[Claim]] = field(default_factory=dict)
    attention: AttentionTable | None = None


@dataclass(frozen=True, eq=False)
class Space:
    """The embedding space of one retrieval model, its ranks and its scores."""

    model: str
    embedded: Embeddings
    ranks: Ranks
    scores: Mapping[str, Score]


@dataclass(frozen=True, eq=False)
class Results:
    """Results of one experiment; ``audits`` has the table of each audit, by name."""

    name: str
    data: Manifest
    systems: list[System]
    spaces: list[Space]
    audits: Mapping[str, pd.DataFrame]


def read_experiment(folder: Path, split: str) -> Results:
    """Everything that the experiment in ``folder`` left of a split.

    Systems are in the order of the summary; those that it lacks follow, first without reranking, then rerankings, then
    oracles. The retrieval model with the highest R@1 comes first; one without ranks is left out.
    """
    if not folder.is_dir():
        raise UserError("no such folder", where=folder, remedy=_REMEDY)
    data = read_manifest(folder / "data" / "manifest.json")
    check_split(split)
    systems = [_system(folder, path, split) for path in sorted(folder.glob(f"captions/*/*/{split}/captions.json"))]
    spaces = []
    for path in sorted(folder.glob(f"embeddings/*/{split}/embeddings.npz")):
        model = path.parts[-3]
        metrics = folder / "metrics" / "retrieval" / model / split
        if (metrics / "ranks.npz").is_file():
            embedded = read_embeddings(path, data, split)
            ranks = RankFile.read(metrics / "ranks.npz", embedded).ranks
            spaces.append(Space(model, embedded, ranks, _scores(metrics)))
    audits = {path.parts[-2]: read_audit(path) for path in sorted(folder.glob("audits/*/audit.parquet"))}
    if not systems and not spaces and not audits:
        known = {path.parent.name for path in folder.glob("captions/*/*/*/captions.json")}
        known |= {path.parent.name for path in folder.glob("embeddings/*/*/embeddings.npz")}
        remedy = f"it has some of {', '.join(sorted(known))}: --split {min(known)}" if known else _REMEDY
        raise UserError(f"no captions and no embeddings of the split {split}", where=folder, remedy=remedy)
    order = _order(folder)
    systems.sort(
        key=lambda one: (order.get((one.model, one.decoding), len(order)), one.model, one.oracle, bool(one.base))
    )
    spaces.sort(key=lambda one: -sum(one.scores[name]["value"] or 0 for name in _RECALL if name in one.scores))
    return Results(folder.resolve().name, data, systems, spaces, audits)


def _system(folder: Path, path: Path, split: str) -> System:
    model, decoding = path.parts[-4:-2]
    metrics = folder / "metrics" / model / decoding / split
    captions, attention, per_image = read_captions(path), path.with_name("attention.npz"), metrics / "per_image.parquet"
    claims = path.with_name("claims.json")
    return System(
        model,
        decoding,
        _base(folder / "comparisons" / model / decoding / split / "comparison.json"),
        is_oracle(captions.values()),
        captions,
        _scores(metrics),
        read_per_image(per_image).set_index("image_id") if per_image.is_file() else None,
        read_claims(claims) if claims.is_file() else {},
        read_attention(attention) if attention.is_file() else None,
    )


def _base(comparison: Path) -> str:
    """Return the decoding before reranking. A comparison of two captioners has none."""
    if not comparison.is_file():
        return ""
    content = read_comparison(comparison)
    before: dict[str, Any] = content["before"]
    return str(before["decoding"]) if before["model"] == content["after"]["model"] else ""


def _order(folder: Path) -> dict[tuple[str, str], int]:
    """Return the place of each model and decoding in the tables of scores."""
    if not (folder / "summary.csv").is_file():
        return {}
    pairs = read_summary(folder / "summary.csv")[["model", "decoding"]].drop_duplicates()
    return {pair: place for place, pair in enumerate(pairs.itertuples(index=False, name=None))}


def _scores(metrics: Path) -> dict[str, Score]:
    """Return all scores of the files of metrics in a folder."""
    return {
        name: score for path in sorted(metrics.glob("*.json")) for name, score in read_metrics(path)["metrics"].items()
    }


@dataclass(frozen=True, eq=False)
class Gallery:
    """Images and references of all experiments.

    Attributes:
        images: the images of the split in the order of the first experiment, then further images of the others:
            ``image_id, root, path, width, height``; ``root`` is a folder or an archive.
        references: in the order of the images: ``image, text, language``; ``image`` is the number of the image.
        image_of_row: for each experiment, the number of the image of each row of its manifest; ``ABSENT`` for other
            splits.
        reference_of_row: the same for rows of captions.
    """

    images: pd.DataFrame
    references: pd.DataFrame
    image_of_row: list[Numbers]
    reference_of_row: list[Numbers]


def build_gallery(experiments: Sequence[Results], split: str) -> Gallery:
    """Return the images and references of a split of all experiments. What two experiments share is there once."""
    tables, texts = [], []
    for number, one in enumerate(experiments):
        rows = one.data.rows(split)
        origin: dict[str, Any] = {"experiment": number, "name": one.name, "root": one.data.image_root}
        tables.append(one.data.images.iloc[rows].assign(row=rows, **origin))
        texts.append(one.data.captions_of(split).assign(experiment=number))
    every = pd.concat(tables, ignore_index=True)
    images = every.drop_duplicates("image_id", ignore_index=True)
    every["image"] = pd.factorize(every["image_id"])[0]
    for _, other in every[every["sha256"] != images["sha256"].loc[every["image"]].to_numpy()].iterrows():
        first = images["name"].iloc[other["image"]]
        what = f"image '{other['image_id']}' of {other['name']} is another picture than that of {first}"
        raise UserError(what, remedy="explore experiments of one data set")
    image_of_row = _by_row(every, "row", "image", [len(one.data.images) for one in experiments])
    captions, key = pd.concat(texts), ["image", "text", "language"]
    captions["image"] = [
        image_of_row[n][row] for n, row in zip(captions["experiment"], captions["image_row"], strict=True)
    ]
    references = captions[key].drop_duplicates().sort_values("image", kind="stable", ignore_index=True)
    captions = captions.merge(references.reset_index(names="reference"), on=key)
    sizes = [len(one.data.captions) for one in experiments]
    return Gallery(images, references, image_of_row, _by_row(captions, "caption_row", "reference", sizes))


def _by_row(table: pd.DataFrame, row: str, number: str, sizes: Sequence[int]) -> list[Numbers]:
    """Return a number for each row of each experiment."""
    numbers = [np.full(size, ABSENT, np.int64) for size in sizes]
    for experiment, own_numbers in enumerate(numbers):
        own = table[table["experiment"] == experiment]
        own_numbers[own[row]] = own[number]
    return numbers
