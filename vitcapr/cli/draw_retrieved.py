"""Draw where retrieval goes wrong: image_to_text.<format>, text_to_image.<format>."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from PIL import Image

from vitcapr.artefacts.embeddings import Embeddings, read_embeddings_of
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.ranks import RankFile, Ranks
from vitcapr.cli.parts.options import EmbeddedSplit, Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.figures.examples import read_picture
from vitcapr.figures.failures import caption_failures, image_failures
from vitcapr.figures.retrieval import MissedCaption, MissedImage, image_to_text, text_to_image
from vitcapr.figures.style import save_figure
from vitcapr.progress import Reporter


def main(
    embeddings: Annotated[Path, typer.Option(help="embeddings.npz of a retriever on the split.")],
    ranks: Annotated[Path, typer.Option(help="ranks.npz of the same embeddings.")],
    manifest: ManifestFile,
    split: EmbeddedSplit,
    output_dir: Annotated[Path, typer.Option(help="Receives image_to_text.<format> and text_to_image.<format>.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw queries whose first match is wrong, chosen at random: image_to_text.<format>, text_to_image.<format>."""
    options = parse_settings(FigureSettings, settings).figures
    data = read_manifest(manifest)
    embedded = read_embeddings_of(embeddings, data)
    if set(data.images["split"].iloc[embedded.image_row]) != {split}:
        raise UserError(f"these are not embeddings of the split {split}", where=embeddings)
    true = _ranks_of(embedded, ranks)
    text = data.captions["text"].iloc[embedded.caption_row].tolist()
    with Reporter(log) as reporter, ImageSource(data.image_root) as source:

        def picture(position: int) -> Image.Image:
            return read_picture(data, source, int(embedded.image_row[position]))

        images = [
            MissedImage(picture(case.query), text[case.wrong], text[case.true], case)
            for case in image_failures(embedded, true, options.failures, options.seed)
        ]
        captions = [
            MissedCaption(text[case.query], picture(case.wrong), picture(case.true), case)
            for case in caption_failures(embedded, true, options.failures, options.seed)
        ]
        failed = {"image_to_text": true.i2t, "text_to_image": true.t2i}
        figures = {
            "image_to_text": image_to_text(images, int((true.i2t > 1).sum()), len(true.i2t)),
            "text_to_image": text_to_image(captions, int((true.t2i > 1).sum()), len(true.t2i)),
        }
        for name, figure in figures.items():
            for path in save_figure(figure, output_dir, name, options.formats):
                reporter.line(f"{path}: {(failed[name] > 1).sum()} of {len(failed[name])} first matches are wrong")


def _ranks_of(embedded: Embeddings, path: Path) -> Ranks:
    """Raises:
    UserError: the file is not a table of ranks, or is of other embeddings.
    """
    found = RankFile.read(path)
    for name in ("image_row", "caption_row"):
        if not np.array_equal(getattr(found, name), getattr(embedded, name)):
            raise UserError("the ranks are of other embeddings", where=path, remedy="score these embeddings again")
    return found.ranks


if __name__ == "__main__":
    launch(main)
