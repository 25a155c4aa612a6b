"""Draw where a captioner looked as it wrote each word: attention-1.<format> to attention-N.<format>."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from vitcapr.artefacts.attention import AttentionTable, read_attention
from vitcapr.artefacts.captions import DecodedCaption, read_captions
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import AttentionFile, CaptionedSplit, Captions, Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.figures.attention import attended_words
from vitcapr.figures.examples import choose_long, read_picture, rows_of_split
from vitcapr.figures.style import save_figure
from vitcapr.progress import Reporter


def main(
    captions: Captions,
    attention: AttentionFile,
    manifest: ManifestFile,
    split: CaptionedSplit,
    output_dir: Annotated[Path, typer.Option(help="Receives attention-1.<format> to attention-N.<format>.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw where a captioner looked as it wrote each word: attention-1.<format> to attention-N.<format>.

    The images are drawn at random from those with the longest captions.
    """
    options = parse_settings(FigureSettings, settings).figures
    data = read_manifest(manifest)
    written, table = read_captions(captions), read_attention(attention)
    image_ids = data.images["image_id"].tolist()
    rows = rows_of_split(data, split, {str(captions): written})
    lengths = {row: len(written[image_ids[row]].tokens) for row in rows}
    chosen = choose_long(lengths, options.attended, options.seed)
    weights = [_attention_of(table, row, written[image_ids[row]], image_ids[row], attention) for row in chosen]
    with Reporter(log) as reporter, ImageSource(data.image_root) as source:
        for number, (row, of_words) in enumerate(zip(chosen, weights, strict=True), start=1):
            caption = written[image_ids[row]]
            figure = attended_words(read_picture(data, source, row), caption.tokens, of_words)
            for path in save_figure(figure, output_dir, f"attention-{number}", options.formats):
                reporter.line(f"{path}: image {image_ids[row]}, {caption.caption}")


def _attention_of(
    table: AttentionTable, row: int, caption: DecodedCaption, image_id: str, path: Path
) -> NDArray[np.floating]:
    """The attention (L, h, w) behind the L words of a caption."""
    weights = table.of_row(row)
    if weights is None or len(weights) != len(caption.tokens):
        found = "no attention" if weights is None else f"attention for {len(weights)} words"
        raise UserError(
            f"{found} for the {len(caption.tokens)} words of image {image_id}",
            where=path,
            remedy="give the captions and the attention of one decoding",
        )
    return weights


if __name__ == "__main__":
    launch(main)
