"""Scores over seeds: mean, standard deviation and range of each model, and one model against another seed by seed."""

import io
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from vitcapr.cli.parts.options import Log, Settings, Summary
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.spread import SpreadSettings
from vitcapr.files import write_text
from vitcapr.metrics.spread import Seeded, markdown, paired, spread
from vitcapr.metrics.summary import read_summary
from vitcapr.progress import Reporter


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
    over_seeds, one_against_other = spread(scores, models), paired(scores, models)
    write_text(output, _csv(over_seeds))
    write_text(pairs, _csv(one_against_other))
    write_text(table, markdown(over_seeds, one_against_other))
    with Reporter(log) as reporter:
        groups = over_seeds[["model", "decoding"]].drop_duplicates()
        reporter.line(f"spread: {len(groups)} models over seeds in {table}")


def _csv(table: pd.DataFrame) -> str:
    stream = io.StringIO()
    table.to_csv(stream, index=False, lineterminator="\n")
    return stream.getvalue()


if __name__ == "__main__":
    launch(main)
