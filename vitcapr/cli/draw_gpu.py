"""Draw GPU use and memory over training: gpu.<format>."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.gpu_use import read_gpu_use
from vitcapr.cli.parts.named import parse_named
from vitcapr.cli.parts.options import Log, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.figures.gpu import gpu_use
from vitcapr.figures.style import save_figure
from vitcapr.progress import Reporter


def main(
    use: Annotated[list[str], typer.Option(help="NAME=gpu.csv of a model's training; once for each.")],
    output_dir: Annotated[Path, typer.Option(help="Receives gpu.<format>.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw GPU use and memory over training, or what was trained on where it was no GPU: gpu.<format>."""
    options = parse_settings(FigureSettings, settings).figures
    trainings = {name: read_gpu_use(path) for name, path in parse_named(use, "--use").items()}
    with Reporter(log) as reporter:
        for path in save_figure(gpu_use(trainings), output_dir, "gpu", options.formats):
            samples = sum(len(training.samples) for training in trainings.values())
            reporter.line(f"{path}: {len(trainings)} trainings, {samples} samples")


if __name__ == "__main__":
    launch(main)
