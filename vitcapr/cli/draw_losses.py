"""Draw the losses of matchers side by side, for instance of several learning rates or optimisers."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.history import read_history
from vitcapr.cli.parts.named import parse_named
from vitcapr.cli.parts.options import Log, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
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
    figure = loss_curves({model: read_history(path) for model, path in parse_named(history, "--history").items()})
    with Reporter(log) as reporter:
        for path in save_figure(figure, output_dir, name, options.formats):
            reporter.line(f"{path}: losses of {len(history)} trainings")


if __name__ == "__main__":
    launch(main)
