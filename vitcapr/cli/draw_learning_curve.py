"""Draw Recall@1 against the number of training pairs: learning_curve.<format>."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.metrics import read_metrics
from vitcapr.artefacts.model_card import read_card
from vitcapr.cli.parts.options import Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.errors import UserError
from vitcapr.figures.learning_curve import Trained, learning_curve
from vitcapr.figures.style import save_figure
from vitcapr.metrics.retrieval_report import searched
from vitcapr.progress import Reporter


def main(
    trained: Annotated[list[str], typer.Option(help="SYSTEM=card.json=metrics.json of one training; once for each.")],
    manifest: ManifestFile,
    output_dir: Annotated[Path, typer.Option(help="Receives learning_curve.<format>.")],
    language: Annotated[str, typer.Option(help="Language of the captions that were learnt.")] = "en",
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw Recall@1 against the number of training pairs, the mean over the trainings of a system and their spread.

    The number of pairs is on the card; a training on all of them has as many as the training split has captions.
    """
    options = parse_settings(FigureSettings, settings).figures
    whole = len(read_manifest(manifest).captions_of("train", language))
    systems: dict[str, list[Trained]] = {}
    protocols = []
    for value in trained:
        parts = value.split("=")
        if len(parts) != 3 or not all(parts):
            raise UserError(f"--trained '{value}' is not of the form SYSTEM=CARD=METRICS")
        name, card, metrics = parts
        content = read_metrics(Path(metrics))
        scores = content["metrics"]
        protocols.append(content["protocol"])
        try:
            pairs = read_card(Path(card))["settings"]["retriever"]["training"]["pairs"]
            recalls = [float(scores[f"{direction}_recall_1"]["value"]) for direction in ("i2t", "t2i")]
        except (KeyError, TypeError) as error:
            raise UserError("not the card and the scores of a retriever", where=f"{card}, {metrics}") from error
        systems.setdefault(name, []).append(Trained(whole if pairs is None else pairs, *recalls))
    with Reporter(log) as reporter:
        figure = learning_curve(systems, searched(protocols))
        for path in save_figure(figure, output_dir, "learning_curve", options.formats):
            reporter.line(f"{path}: {len(trained)} trainings of {len(systems)} systems")


if __name__ == "__main__":
    launch(main)
