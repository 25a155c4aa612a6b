"""Draw training curves: curves.<format> of captioners, retrievers.<format>, and backbone.<format>."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from vitcapr.artefacts.history import read_history
from vitcapr.cli.parts.named import parse_named
from vitcapr.cli.parts.options import Log, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.errors import UserError
from vitcapr.figures.curves import backbone_curves, retriever_curves, training_curves
from vitcapr.figures.style import save_figure
from vitcapr.progress import Reporter


def main(
    output_dir: Annotated[Path, typer.Option(help="Receives a figure for every kind of history that is given.")],
    history: Annotated[list[str] | None, typer.Option(help="NAME=history.csv of a captioner; once for each.")] = None,
    retriever: Annotated[list[str] | None, typer.Option(help="NAME=history.csv of a retriever; once for each.")] = None,
    backbone: Annotated[Path | None, typer.Option(help="history.csv of the backbone that was trained.")] = None,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw training curves: curves.<format> of captioners, retrievers.<format>, and backbone.<format>."""
    options = parse_settings(FigureSettings, settings).figures
    figures = {}
    if history:
        figures["curves"] = training_curves(_histories(history, "--history"))
    if retriever:
        figures["retrievers"] = retriever_curves(_histories(retriever, "--retriever"))
    if backbone is not None:
        figures["backbone"] = backbone_curves(read_history(backbone))
    if not figures:
        raise UserError("no history is given", remedy="give --history, --retriever or --backbone")
    with Reporter(log) as reporter:
        for name, figure in figures.items():
            for path in save_figure(figure, output_dir, name, options.formats):
                reporter.line(f"{path}: training curves")


def _histories(values: list[str], option: str) -> dict[str, pd.DataFrame]:
    return {name: read_history(path) for name, path in parse_named(values, option).items()}


if __name__ == "__main__":
    launch(main)
