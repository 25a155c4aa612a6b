"""Two scored systems on the same images: what changed in every score."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.comparison import write_comparison
from vitcapr.cli.parts.options import Log, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.metrics import ScoreSettings
from vitcapr.files import write_text
from vitcapr.metrics.comparison import compare_systems, comparison_page, read_scored
from vitcapr.progress import Reporter


def main(
    before: Annotated[Path, typer.Option(help="metrics.json of one system")],
    before_images: Annotated[Path, typer.Option(help="per_image.parquet beside it")],
    after: Annotated[Path, typer.Option(help="metrics.json of the other")],
    after_images: Annotated[Path, typer.Option(help="per_image.parquet beside it")],
    output: Annotated[Path, typer.Option(help="comparison.json to write")],
    table: Annotated[Path, typer.Option(help="comparison.md to write")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Compare two systems scored on the same split: the difference of every score, its interval and its test."""
    metrics = parse_settings(ScoreSettings, settings).metrics
    systems = read_scored(before, before_images), read_scored(after, after_images)
    content = compare_systems(*systems, metrics.bootstrap_samples, metrics.bootstrap_seed)
    write_comparison(output, content)
    write_text(table, comparison_page(content))
    with Reporter(log) as reporter:
        for name, row in content["metrics"].items():
            reporter.line(f"compare: {name} {row['before']:.4f} to {row['after']:.4f}, {row['verdict']}")


if __name__ == "__main__":
    launch(main)
