"""Draw the losses of matchers side by side, for instance of several learning rates or optimisers."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from vitcapr.cli.parts.named import parse_named
from vitcapr.cli.parts.options import Log, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.errors import UserError
from vitcapr.figures.curves import loss_curves
from vitcapr.figures.style import save_figure
from vitcapr.progress import Reporter


def main(
    history: Annotated[list[str], typer.Option(help="NAME=history.csv of a matcher; once for each.")],
    name: Annotated[str, typer.Option(help="The figure's name.")],
    output_dir: Annotated[Path, typer.Option(help="Receives NAME.<format>.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw training and validation losses by epoch (figures 11 and 12 of Peng 2025)."""
    options = parse_settings(FigureSettings, settings).figures
    figure = loss_curves({model: _read(path) for model, path in parse_named(history, "--history").items()})
    with Reporter(log) as reporter:
        for path in save_figure(figure, output_dir, name, options.formats):
            reporter.line(f"{path}: losses of {len(history)} trainings")


def _read(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path)
    except FileNotFoundError as error:
        raise UserError("no such file", where=path, remedy="run the training stage") from error
    except ValueError as error:
        raise UserError(f"not a history of training: {error}", where=path) from error


if __name__ == "__main__":
    launch(main)
