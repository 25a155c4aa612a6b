"""Draw how often words are used and how long captions are: vocabulary.<format>, lengths.<format>."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.manifest import SPLITS, read_manifest
from vitcapr.artefacts.tokens import TokenTable
from vitcapr.artefacts.vocabulary import Vocabulary
from vitcapr.cli.parts.options import Log, ManifestFile, Settings, TokensFile, VocabularyFile
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.figures.style import save_figure
from vitcapr.figures.text import caption_lengths, rank_frequency
from vitcapr.progress import Reporter


def main(
    vocabulary: VocabularyFile,
    tokens: TokensFile,
    manifest: ManifestFile,
    output_dir: Annotated[Path, typer.Option(help="Receives vocabulary.<format> and lengths.<format>.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw how often words are used and how long captions are: vocabulary.<format>, lengths.<format>."""
    options = parse_settings(FigureSettings, settings).figures
    words, table = Vocabulary.read(vocabulary), TokenTable.read(tokens)
    split_of = read_manifest(manifest).images["split"].to_numpy()[table.image_row]
    figures = {
        "vocabulary": rank_frequency(words.counts[words.first_word :], words.rare),
        # Start and end are counted in the table, and are no words.
        "lengths": caption_lengths({split: table.lengths[split_of == split] - 2 for split in SPLITS}),
    }
    with Reporter(log) as reporter:
        for name, figure in figures.items():
            for path in save_figure(figure, output_dir, name, options.formats):
                reporter.line(f"{path}: {words.signature}")


if __name__ == "__main__":
    launch(main)
