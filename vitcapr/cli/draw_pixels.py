"""Draw what happens to pictures before they are learnt: augmentations.<format>, encoding.<format>."""

import base64
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Log, ManifestFile, Pixels, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.data.images import ImageSource, decode
from vitcapr.features.batches.augment import Augmentation, Draws, augment
from vitcapr.features.extraction.pixels import PIXELS
from vitcapr.features.store.reader import open_features
from vitcapr.figures.augmented import Encoded, augmentation_sheet, encoding_sheet
from vitcapr.figures.style import save_figure
from vitcapr.progress import Reporter

ROWS = 4
SHOWN = Augmentation()
"""The sheet shows each change as far as it goes by default."""


def main(
    pixels: Pixels,
    manifest: ManifestFile,
    output_dir: Annotated[Path, typer.Option(help="Receives augmentations.<format> and encoding.<format>.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw each augmentation on its own for a few pictures, and one picture in Base64."""
    options = parse_settings(FigureSettings, settings).figures
    data, store = read_manifest(manifest), open_features(pixels)
    number = min(ROWS, len(data.images))
    rows = np.random.default_rng(options.seed).permutation(len(data.images))[:number]
    originals = torch.from_numpy(store[PIXELS].gather(rows))
    columns = [augment(originals, draws, SHOWN.radius).numpy() for draws in _changes(number).values()]
    sheet = augmentation_sheet([[column[row] for column in columns] for row in range(number)], list(_changes(number)))
    first = data.images.iloc[int(rows[0])]
    with ImageSource(data.image_root) as source:
        content = source.read(first["path"])
    encoded = base64.b64encode(content).decode()
    picture = np.asarray(decode(content, int(first["width"]) * int(first["height"])))
    figures = {
        "augmentations": sheet,
        "encoding": encoding_sheet(Encoded(picture, encoded[:640], len(content), len(encoded))),
    }
    with Reporter(log) as reporter:
        for name, figure in figures.items():
            for path in save_figure(figure, output_dir, name, options.formats):
                reporter.line(str(path))


def _changes(pictures: int) -> dict[str, Draws]:
    """Each change alone, at its limit, for so many pictures."""
    nothing = Draws.none(pictures)
    every = np.ones(pictures)
    return {
        "original": nothing,
        "rotation": replace(nothing, angle=SHOWN.rotation * every),
        "flip": replace(nothing, flip=every > 0),
        "upside down": replace(nothing, vertical_flip=every > 0),
        "brighter": replace(nothing, brightness=(1 + SHOWN.brightness) * every),
        "hue": replace(nothing, hue=SHOWN.hue * every),
        "blur": replace(nothing, blur=SHOWN.blur * every),
    }


if __name__ == "__main__":
    launch(main)
