"""Draw the space of images and captions: pca.<format>, tsne.<format>, cosines.<format>."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.embeddings import read_embeddings_of
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.errors import UserError
from vitcapr.features.store.reader import open_features
from vitcapr.figures.embeddings import cosine_histogram, cosines, neighbourhoods, principal_components
from vitcapr.figures.style import save_figure
from vitcapr.progress import Reporter


def main(
    embeddings: Annotated[Path, typer.Option(help="embeddings.npz of a retriever on one split.")],
    manifest: ManifestFile,
    output_dir: Annotated[Path, typer.Option(help="Receives pca.<format>, tsne.<format> and cosines.<format>.")],
    image_features: Annotated[
        Path | None, typer.Option(help="Sealed features of the images, for a panel of the time before training.")
    ] = None,
    text_features: Annotated[
        Path | None, typer.Option(help="Sealed features of the captions, for the same panel; both or none.")
    ] = None,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw the space of images and captions: pca.<format>, tsne.<format>, cosines.<format>."""
    options = parse_settings(FigureSettings, settings).figures
    embedded = read_embeddings_of(embeddings, read_manifest(manifest))
    if (image_features is None) != (text_features is None):
        raise UserError("features of images or of captions alone", remedy="give both, or none")
    before = None
    if image_features is not None and text_features is not None:
        images = open_features(image_features)["cls"].gather(embedded.image_row)
        before = images, open_features(text_features)["text"].gather(embedded.caption_row)
    figures = {
        "pca": principal_components(embedded, before),
        "tsne": neighbourhoods(embedded),
        "cosines": cosine_histogram(cosines(embedded, options.seed)),
    }
    with Reporter(log) as reporter:
        for name, figure in figures.items():
            for path in save_figure(figure, output_dir, name, options.formats):
                reporter.line(f"{path}: {len(embedded.images)} images, {len(embedded.captions)} captions")


if __name__ == "__main__":
    launch(main)
