"""Scores over seeds: mean, standard deviation and range of each model, and one model against another seed by seed."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.summary import read_summary
from vitcapr.cli.parts.options import Log, Settings, Summary
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.spread import SpreadSettings
from vitcapr.files import write_text
from vitcapr.metrics.spread import Seeded, paired, spread, spread_tables
from vitcapr.progress import Reporter
from vitcapr.tables.csv import frame_to_csv
from vitcapr.tables.markdown import to_page


def main(
    summary: Summary,
    settings: Settings,
    output: Annotated[Path, typer.Option(help="spread.csv to write")],
    pairs: Annotated[Path, typer.Option(help="spread_pairs.csv to write")],
    table: Annotated[Path, typer.Option(help="spread.md to write")],
    log: Log = None,
) -> None:
    """Say how far scores lie apart over seeds, and which models differ by more."""
    chosen = parse_settings(SpreadSettings, settings).models
    models = {name: Seeded(model.of, model.vary, model.seed) for name, model in chosen.items()}
    scores = read_summary(summary)
    seed_average, one_against_other = spread(scores, models), paired(scores, models)
    write_text(output, frame_to_csv(seed_average))
    write_text(pairs, frame_to_csv(one_against_other))
    write_text(table, to_page(spread_tables(seed_average, one_against_other), "Over seeds"))
    with Reporter(log) as reporter:
        groups = seed_average[["model", "decoding"]].drop_duplicates()
        reporter.line(f"spread: {len(groups)} models over seeds in {table}")


if __name__ == "__main__":
    launch(main)
