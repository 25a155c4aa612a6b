"""Draw training curves: curves.<format>, and backbone.<format> where a backbone was trained."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from vitcapr.cli.named import parse_named
from vitcapr.cli.stage import Log, Settings, launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.errors import UserError
from vitcapr.figures.curves import backbone_curves, training_curves
from vitcapr.figures.style import save_figure
from vitcapr.progress import Reporter


def main(
    history: Annotated[list[str], typer.Option(help="NAME=history.csv of a model; once for each.")],
    output_dir: Annotated[Path, typer.Option(help="Receives curves.<format> and backbone.<format>.")],
    backbone: Annotated[Path | None, typer.Option(help="history.csv of the backbone that was trained.")] = None,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw training curves: curves.<format>, and backbone.<format> where a backbone was trained."""
    options = parse_settings(FigureSettings, settings).figures
    histories = {name: _read(path) for name, path in parse_named(history, "--history").items()}
    figures = {"curves": training_curves(histories)}
    if backbone is not None:
        figures["backbone"] = backbone_curves(_read(backbone))
    with Reporter(log) as reporter:
        for name, figure in figures.items():
            for path in save_figure(figure, output_dir, name, options.formats):
                reporter.line(f"{path}: training curves")


def _read(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(path)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy="run the training stage") from error
    except ValueError as error:
        raise UserError(f"not a history of training: {error}", where=path) from error
    if not {"epoch", "train_loss"} <= set(table.columns) or table.empty:
        raise UserError("not a history of training: it needs epoch and train_loss", where=path)
    return table


if __name__ == "__main__":
    launch(main)
