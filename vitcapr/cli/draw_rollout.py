"""Draw the attention of the backbone beside the captioner's: rollout.<format>."""

from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from PIL import Image

from vitcapr.artefacts.attention import read_attention
from vitcapr.artefacts.captions import read_captions
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import (
    AttentionFile,
    BackboneSource,
    CaptionedSplit,
    Captions,
    Log,
    ManifestFile,
    Settings,
)
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.rollout import RolloutSettings
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.features.encoders.backbones import locate, model_image_size
from vitcapr.features.encoders.preprocess import Preprocessing, read_preprocessing
from vitcapr.features.encoders.rollout import AttendingBackbone
from vitcapr.figures.examples import choose_long, read_picture, rows_of_split
from vitcapr.figures.rollout import Looked, rank_correlation, rolled_out_and_attended
from vitcapr.figures.style import save_figure
from vitcapr.progress import Reporter


def main(
    captions: Captions,
    attention: AttentionFile,
    manifest: ManifestFile,
    split: CaptionedSplit,
    output_dir: Annotated[Path, typer.Option(help="Receives rollout.<format>.")],
    settings: Settings,
    source: BackboneSource = None,
    log: Log = None,
) -> None:
    """Draw, for the images of draw_attention, where the backbone's CLS vector comes from beside where the captioner
    looks: rollout.<format>."""
    chosen = parse_settings(RolloutSettings, settings)
    wanted, options = chosen.backbone, chosen.figures
    data = read_manifest(manifest)
    written, table = read_captions(captions), read_attention(attention)
    image_ids = data.images["image_id"].tolist()
    rows = rows_of_split(data, split, {str(captions): written})
    lengths = {row: len(written[image_ids[row]].tokens) for row in rows}
    with Reporter(log) as reporter, ImageSource(data.image_root) as pictures:
        checkpoint = locate(source or wanted.source, wanted.revision)
        preprocessing, note = read_preprocessing(
            checkpoint.folder, model_image_size(checkpoint.folder), wanted.image_size, wanted.interpolation
        )
        if note:
            reporter.line(note)
        backbone = AttendingBackbone(checkpoint.folder, preprocessing.size, torch.float32)
        if backbone.grid != table.grid:
            raise UserError(
                f"the backbone has {_by(backbone.grid)} patches, the captioner attends to {_by(table.grid)}",
                where=attention,
                remedy="give the backbone that the captioner's features are from",
            )
        cases = []
        for row in choose_long(lengths, options.attended, options.seed):
            weights, words = table.of_row(row), written[image_ids[row]].tokens
            if weights is None or len(weights) != len(words):
                raise UserError(
                    f"no attention for the {len(words)} words of image {image_ids[row]}",
                    where=attention,
                    remedy="give the captions and the attention of one decoding",
                )
            picture = read_picture(data, pictures, row)
            seen = _seen(picture, preprocessing)
            rolled = backbone.roll_out(preprocessing.normalise(torch.from_numpy(seen[None]), torch.float32))[0].numpy()
            cases.append(Looked(picture, words, rolled, weights))
            found = rank_correlation(rolled, weights.mean(axis=0)) if len(words) else float("nan")
            reporter.line(f"image {image_ids[row]}: rank correlation of roll-out and attention {found:.2f}")
        for path in save_figure(rolled_out_and_attended(cases), output_dir, "rollout", options.formats):
            reporter.line(f"{path}: {len(cases)} images of the split {split}")


def _seen(picture: Image.Image, preprocessing: Preprocessing) -> np.ndarray:
    """The pixels (H, W, 3) uint8 that the backbone sees, as extraction makes them."""
    pixels = np.empty((*preprocessing.size, 3), np.uint8)
    preprocessing.prepare(picture, pixels)
    return pixels


def _by(grid: tuple[int, int]) -> str:
    return f"{grid[0]} x {grid[1]}"


if __name__ == "__main__":
    launch(main)
