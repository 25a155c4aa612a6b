"""Draw how long the texts of pairs are in each language, before and after cleaning: lengths.<format>."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.data.pairs.claims import text_length
from vitcapr.data.pairs.dataset import read_pairs
from vitcapr.figures.style import save_figure
from vitcapr.figures.text import lengths_by_language
from vitcapr.progress import Reporter


def main(
    manifest: ManifestFile,
    output_dir: Annotated[Path, typer.Option(help="Receives lengths.<format>.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw the distribution of lengths by language: words, of Chinese characters; raw and cleaned."""
    options = parse_settings(FigureSettings, settings).figures
    captions = read_manifest(manifest).captions
    captions = captions.assign(raw=read_pairs(manifest, captions["caption_id"].tolist())["raw"])
    lengths = {}
    for language, part in captions.groupby("language"):
        raw, cleaned = (np.array([text_length(text, str(language)) for text in part[name]]) for name in ("raw", "text"))
        lengths[str(language)] = raw, cleaned
    with Reporter(log) as reporter:
        for path in save_figure(lengths_by_language(lengths), output_dir, "lengths", options.formats):
            reporter.line(f"{path}: {len(captions):,} texts in {' and '.join(lengths)}")


if __name__ == "__main__":
    launch(main)
