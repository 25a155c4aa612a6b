"""METEOR's paraphrases, those that the references of a split can use: read once instead of by every score."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.metrics import ScoreSettings
from vitcapr.metrics.paraphrases import write_paraphrases
from vitcapr.metrics.references import references_of, tokenize_all
from vitcapr.progress import Reporter


def main(
    manifest: ManifestFile,
    split: Annotated[str, typer.Option(help="The split whose captions are scored")],
    output_dir: Annotated[Path, typer.Option(help="The folder of card.json and table.gz")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Cut METEOR's table of paraphrases down to the references of a split."""
    chosen = parse_settings(ScoreSettings, settings)
    timeout = chosen.metrics.scorer_timeout
    references = references_of(read_manifest(manifest), split, chosen.language)
    with Reporter(log) as reporter:
        _, words = tokenize_all([], references, timeout)
        reporter.line(f"paraphrases: of {sum(map(len, words.values()))} references")
        count = write_paraphrases(output_dir, words, timeout)
        reporter.line(f"paraphrases: {count} entries")


if __name__ == "__main__":
    launch(main, shelve=["output_dir"])
