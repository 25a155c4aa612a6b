"""Attention against the masks of the objects: does the captioner look at what it names?"""

import io
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pandas as pd
import typer
from PIL import Image

from vitcapr.artefacts.attention import read_attention
from vitcapr.artefacts.captions import read_captions
from vitcapr.artefacts.manifest import Manifest, read_manifest
from vitcapr.artefacts.metrics import write_metrics
from vitcapr.artefacts.vocabulary import Vocabulary
from vitcapr.cli.parts.options import (
    AttentionFile,
    CaptionedSplit,
    CaptionerVocabulary,
    Captions,
    DecodingName,
    Log,
    MetricsOutput,
    ModelName,
    Settings,
)
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.metrics import ScoreSettings
from vitcapr.data.archive import Archive, DamagedMember
from vitcapr.errors import UserError
from vitcapr.metrics import grounding
from vitcapr.metrics.bootstrap import Array
from vitcapr.metrics.grounding import Picture
from vitcapr.metrics.inputs import check_candidates
from vitcapr.metrics.report import interval_protocol, score_of
from vitcapr.progress import Reporter


def main(
    captions: Captions,
    attention: AttentionFile,
    manifest: Annotated[Path, typer.Option(help="manifest.json of the data set, which must have objects")],
    vocabulary: CaptionerVocabulary,
    split: CaptionedSplit,
    output: MetricsOutput,
    model: ModelName = "",
    decoding: DecodingName = "",
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Measure how much of each object word's attention falls on the object."""
    chosen = parse_settings(ScoreSettings, settings)
    data = read_manifest(manifest)
    if data.objects is None:
        raise UserError(f"the data set {data.dataset} has no masks of objects", where=manifest)
    rows = data.rows(split)
    images = data.images["image_id"].iloc[rows].tolist()
    written = read_captions(captions)
    check_candidates({image: entry.caption for image, entry in written.items()}, images)
    words = [list(written[image].tokens) for image in images]
    weights, grid = _read_attention(attention, rows, words)

    with Reporter(log) as reporter:
        pictures = _read_pictures(data, images, reporter)
        object_words = frozenset(word for listed in data.objects["words"] for word in listed)
        measures = grounding.measures(words, weights, pictures, object_words, grid)
        samples, seed = chosen.metrics.bootstrap_samples, chosen.metrics.bootstrap_seed
        report = {name: score_of(measure, samples, seed) for name, measure in measures.items()}
        parts = ["grounding:mask-union,area", "pointing:bilinear-max", f"grid:{grid[0]}x{grid[1]}"]
        parts += [f"images:{len(images)}", f"split:{split}", *interval_protocol(samples, seed)]
        parts.append(Vocabulary.read(vocabulary).signature)
        write_metrics(
            output,
            dataset=data.dataset,
            split=split,
            model=model,
            decoding=decoding,
            metrics=report,
            protocol="|".join(parts),
        )
        for name in ("grounding", "pointing_game"):
            value, chance = report[name]["value"], report[f"{name}_chance"]["value"]
            if value is None or chance is None:
                reporter.line(f"ground: {name}: no caption names an object of its picture")
            else:
                reporter.line(f"ground: {name} {value:.3f}, by chance {chance:.3f}")


def _read_attention(
    path: Path, rows: npt.NDArray[np.int64], words: list[list[str]]
) -> tuple[list[Array], tuple[int, int]]:
    """For each image row the weights (words, P) in float64, and the grid."""
    table = read_attention(path)
    found = []
    for row, said in zip(rows, words, strict=True):
        weights = table.of_row(int(row))
        if weights is None or len(weights) != len(said):
            what = "no attention" if weights is None else f"attention for {len(weights)} words, not {len(said)},"
            remedy = "give captions and attention of one decoding"
            raise UserError(f"{what} of the image in row {row}", where=path, remedy=remedy)
        found.append(weights.reshape(len(weights), -1).astype(np.float64))
    return found, table.grid


def _read_pictures(data: Manifest, images: list[str], reporter: Reporter) -> list[Picture]:
    """The label picture of each image and the labels that each word names."""
    assert data.objects is not None
    of_image = dict(iter(data.objects.groupby("image_id", sort=False)))
    pictures = []
    with Archive(data.image_root) as archive, reporter.track("masks", len(images), "images") as tracker:
        for image in images:
            objects = of_image.get(image)
            pictures.append(Picture(np.zeros((1, 1), np.uint8), {}) if objects is None else _picture(archive, objects))
            tracker.advance()
    return pictures


def _picture(archive: Archive, objects: pd.DataFrame) -> Picture:
    """The objects of one image, which share a label picture."""
    path = objects["mask"].iloc[0]
    if (objects["mask"] != path).any():
        image = objects["image_id"].iloc[0]
        raise UserError("the objects of an image are in several label pictures", where=f"image {image}")
    try:
        with Image.open(io.BytesIO(archive.read(path))) as picture:
            labels = np.asarray(picture)
    except (OSError, DamagedMember) as error:
        raise UserError(
            "a mask cannot be read", where=archive.root / path, remedy="run the data stage again"
        ) from error
    if labels.ndim != 2:
        raise UserError("a mask is not a picture of labels with one channel", where=archive.root / path)
    named: dict[str, frozenset[int]] = {}
    for words, label in zip(objects["words"], objects["label"], strict=True):
        for word in words:
            named[word] = named.get(word, frozenset()) | {int(label)}
    return Picture(labels, named)


if __name__ == "__main__":
    launch(main)
