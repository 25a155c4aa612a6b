"""Draw the recall of retrievers side by side: recall.<format>."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from vitcapr.artefacts.metrics import read_metrics
from vitcapr.cli.parts.named import parse_lists
from vitcapr.cli.parts.options import Log, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.errors import UserError
from vitcapr.figures.recall import recall_bars
from vitcapr.figures.style import save_figure
from vitcapr.metrics.retrieval_report import searched
from vitcapr.progress import Reporter


def main(
    metrics: Annotated[list[str], typer.Option(help="NAME=metrics.json of a retriever; a name once for each seed.")],
    output_dir: Annotated[Path, typer.Option(help="Receives recall.<format>.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw Recall@1, 5 and 10 of retrievers in both directions, with intervals and chance: recall.<format>."""
    options = parse_settings(FigureSettings, settings).figures
    read = {name: [read_metrics(path) for path in paths] for name, paths in parse_lists(metrics, "--metrics").items()}
    pools = {(content["dataset"], content["split"]) for several in read.values() for content in several}
    if len(pools) > 1:
        told = " and ".join(f"{dataset} {split}" for dataset, split in sorted(pools))
        raise UserError(f"scores of {told} do not stand in one figure", remedy="give the metrics of one split")
    asked = searched(content["protocol"] for several in read.values() for content in several)
    try:
        figure = recall_bars({_label(name, several): _seed_average(several) for name, several in read.items()}, asked)
    except ValueError as error:
        raise UserError(str(error), remedy="give the metrics of score_retrieval") from error
    with Reporter(log) as reporter:
        for path in save_figure(figure, output_dir, "recall", options.formats):
            reporter.line(f"{path}: {len(read)} retrievers")


def _label(name: str, several: Sequence[Mapping[str, Any]]) -> str:
    return name if len(several) == 1 else f"{name}, {len(several)} seeds"


def _seed_average(several: Sequence[Mapping[str, Any]]) -> Mapping[str, Mapping[str, float | None]]:
    """The scores of one training with their intervals, or the means of several with a standard deviation each way."""
    if len(several) == 1:
        scores: Mapping[str, Mapping[str, float | None]] = several[0]["metrics"]
        return scores
    shared = set.intersection(*(set(content["metrics"]) for content in several))
    means: dict[str, dict[str, float | None]] = {}
    for metric in sorted(shared):
        values = [content["metrics"][metric]["value"] for content in several]
        if None not in values:
            mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
            means[metric] = {"value": mean, "low": mean - spread, "high": mean + spread}
    return means


if __name__ == "__main__":
    launch(main)
