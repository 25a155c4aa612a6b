"""Draw several models beside one another: top_captions.<format>, top_images.<format>, spaces.<format>, found.md."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.artefacts.embeddings import read_embeddings_of
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.named import parse_named
from vitcapr.cli.parts.options import EmbeddedSplit, Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.figures.embeddings import spaces
from vitcapr.figures.examples import read_picture
from vitcapr.figures.side_by_side import (
    Found,
    captions_side_by_side,
    first_captions,
    first_images,
    found_table,
    images_side_by_side,
)
from vitcapr.figures.style import save_figure
from vitcapr.figures.text import language_name
from vitcapr.files import write_text
from vitcapr.progress import Reporter


def main(
    embeddings: Annotated[list[str], typer.Option(help="NAME=embeddings.npz of a model; once for each.")],
    manifest: ManifestFile,
    split: EmbeddedSplit,
    output_dir: Annotated[Path, typer.Option(help="Receives the three figures and found.md.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw what each model finds first for one image and for one caption, and the space that each makes.

    The image and the caption are drawn at random, with the seed of the figures. The models may be retrievers
    or matchers whose captions are all in one language.
    """
    options = parse_settings(FigureSettings, settings).figures
    data = read_manifest(manifest)
    systems = {name: read_embeddings_of(path, data) for name, path in parse_named(embeddings, "--embeddings").items()}
    first = next(iter(systems.values()))
    for name, other in systems.items():
        same = (np.array_equal(getattr(other, rows), getattr(first, rows)) for rows in ("image_row", "caption_row"))
        if not all(same):
            raise UserError(f"the embeddings of '{name}' are of other images or captions than the first")
    if set(data.images["split"].iloc[first.image_row]) != {split}:
        raise UserError(f"these are not embeddings of the split {split}", where=embeddings[0])
    text = data.captions["text"].iloc[first.caption_row].tolist()
    draw = np.random.default_rng(options.seed)
    image, caption = int(draw.integers(len(first.images))), int(draw.integers(len(first.captions)))
    with Reporter(log) as reporter, ImageSource(data.image_root) as source:
        by_image, by_caption = {}, {}
        for name, embedded in systems.items():
            by_image[name] = [
                Found(text[place], float(cosine), bool(right))
                for place, cosine, right in zip(*first_captions(embedded, image), strict=True)
            ]
            by_caption[name] = [
                Found(read_picture(data, source, int(embedded.image_row[place])), float(cosine), bool(right))
                for place, cosine, right in zip(*first_images(embedded, caption), strict=True)
            ]
        spoken = data.captions["language"].iloc[first.caption_row].unique()
        told = f" in {' and '.join(map(language_name, spoken))}" if data.captions["language"].nunique() > 1 else ""
        pool = f"among {{}} of the {split} split, with cosines; the query is drawn at random with seed {options.seed}"
        own = [text[place] for place in np.flatnonzero(first.caption_image == image)]
        of_image = f"The first captions{told} {pool.format(f'{len(first.captions):,}')}"
        of_caption = f"The first images {pool.format(f'{len(first.images):,}')}"
        picture = read_picture(data, source, int(first.image_row[image]))
        figures = {
            "top_captions": captions_side_by_side(picture, own, by_image, of_image),
            "top_images": images_side_by_side(text[caption], by_caption, of_caption),
            "spaces": spaces(systems),
        }
        ids = data.images["image_id"].iloc[first.image_row].tolist()
        texts = {
            name: [(str(match.shown), match.cosine, match.right) for match in matches]
            for name, matches in by_image.items()
        }
        pictures = {
            name: [
                (str(ids[place]), float(cosine), bool(right))
                for place, cosine, right in zip(*first_images(embedded, caption), strict=True)
            ]
            for name, embedded in systems.items()
        }
        tables = found_table(of_image, str(ids[image]), texts), found_table(of_caption, text[caption], pictures)
        write_text(output_dir / "found.md", "\n".join(tables))
        for name, figure in figures.items():
            for path in save_figure(figure, output_dir, name, options.formats):
                reporter.line(f"{path}: {len(systems)} models")


if __name__ == "__main__":
    launch(main)
