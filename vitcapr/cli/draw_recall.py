"""Draw the recall of retrievers side by side: recall.<format>."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.cli.named import parse_named
from vitcapr.cli.stage import Log, Settings, launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.errors import UserError
from vitcapr.figures.recall import recall_bars
from vitcapr.figures.style import save_figure
from vitcapr.metrics.report import read_metrics
from vitcapr.progress import Reporter


def main(
    metrics: Annotated[list[str], typer.Option(help="NAME=metrics.json of a retriever on one split; once for each.")],
    output_dir: Annotated[Path, typer.Option(help="Receives recall.<format>.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw Recall@1, 5 and 10 of retrievers in both directions, with intervals and chance: recall.<format>."""
    options = parse_settings(FigureSettings, settings).figures
    read = {name: read_metrics(path) for name, path in parse_named(metrics, "--metrics").items()}
    pools = {(content["dataset"], content["split"]) for content in read.values()}
    if len(pools) > 1:
        told = " and ".join(f"{dataset} {split}" for dataset, split in sorted(pools))
        raise UserError(f"scores of {told} do not stand in one figure", remedy="give the metrics of one split")
    try:
        figure = recall_bars({name: content["metrics"] for name, content in read.items()})
    except ValueError as error:
        raise UserError(str(error), remedy="give the metrics of score_retrieval") from error
    with Reporter(log) as reporter:
        for path in save_figure(figure, output_dir, "recall", options.formats):
            reporter.line(f"{path}: {len(read)} retrievers")


if __name__ == "__main__":
    launch(main)
