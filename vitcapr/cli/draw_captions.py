"""Draw a sheet of captioned images: captions.<format>."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.cli.parts.named import parse_named
from vitcapr.cli.parts.options import CaptionedSplit, Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.data.images import ImageSource
from vitcapr.data.manifest import read_manifest
from vitcapr.figures.captions import Captioned, caption_sheet
from vitcapr.figures.decoded import read_captions
from vitcapr.figures.examples import choose, read_picture, rows_of_split
from vitcapr.figures.style import save_figure
from vitcapr.progress import Reporter


def main(
    captions: Annotated[list[str], typer.Option(help="NAME=captions.json of a model and decoding; once for each.")],
    manifest: ManifestFile,
    split: CaptionedSplit,
    output_dir: Annotated[Path, typer.Option(help="Receives captions.<format>.")],
    language: Annotated[str, typer.Option(help="Language of the reference caption shown below.")] = "en",
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw a sheet of captioned images, chosen at random: captions.<format>."""
    options = parse_settings(FigureSettings, settings).figures
    data = read_manifest(manifest)
    written = {name: read_captions(path) for name, path in parse_named(captions, "--captions").items()}
    rows = choose(rows_of_split(data, split, written), options.examples, options.seed)
    references = data.captions_of(split, language).drop_duplicates("image_row").set_index("image_row")["text"]
    with Reporter(log) as reporter, ImageSource(data.image_root) as source:
        examples = [
            Captioned(
                picture=read_picture(data, source, row),
                captions=[found[data.images["image_id"].iloc[row]].text for found in written.values()],
                reference=str(references.get(row, "")),
            )
            for row in rows
        ]
        for path in save_figure(caption_sheet(examples, list(written)), output_dir, "captions", options.formats):
            reporter.line(f"{path}: {len(examples)} images of the split {split}")


if __name__ == "__main__":
    launch(main)
