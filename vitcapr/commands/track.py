"""Write training curves and scores to TensorBoard, MLflow or trackio."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError
from vitcapr.files import read_json
from vitcapr.formats.model import CARD
from vitcapr.formats.scores import read_summary
from vitcapr.formats.training import read_history
from vitcapr.pipeline.changes import leaves
from vitcapr.progress import print_lines

HISTORY = "history.csv"


@dataclass(frozen=True)
class TrackedModel:
    """What a tracker is told of one model.

    Attributes:
        name: for instance ``captioners/attention``.
        settings: the settings of its training as JSON, with dots between the keys.
        curves: the numbers of each epoch, by epoch.
        scores: the scores of the summary, for instance ``test/beam/cider``.
    """

    name: str
    settings: dict[str, str]
    curves: dict[int, dict[str, float]]
    scores: dict[str, float]

    def numbers(self) -> Iterator[tuple[int, dict[str, float]]]:
        """The numbers of each epoch, and with the last one again the scores; epoch 0 if there was no training."""
        yield from self.curves.items()
        if self.scores:
            yield max(self.curves, default=0), {f"score/{key}": value for key, value in self.scores.items()}


def main(
    results: Annotated[Path, typer.Argument(help="The folder of an experiment: results/NAME.")],
    to: Annotated[
        Literal["tensorboard", "mlflow", "trackio"], typer.Option(help="The tracker to write to.")
    ] = "tensorboard",
    output: Annotated[
        Path | None, typer.Option(help="The folder to write to; runs/NAME by default. Trackio has a folder of its own.")
    ] = None,
) -> None:
    """Write training curves and scores to TensorBoard, MLflow or trackio. Each model is a run."""
    models = list(tracked_models(results))
    if not models:
        raise UserError("no trained model", where=results, remedy="give the folder of an experiment: results/NAME")
    experiment = results.resolve().name
    folder = output or Path("runs") / experiment
    write = {"tensorboard": to_tensorboard, "mlflow": to_mlflow, "trackio": to_trackio}[to]
    try:
        line = write(experiment, models, folder)
    except ImportError as error:
        remedy = f"pip install 'vitcapr[{to}]'"
        raise UserError(f"{to} is not installed", where="--to", remedy=remedy) from error
    print_lines(f"{len(models)} models of {experiment}: {line}")


def tracked_models(results: Path) -> Iterator[TrackedModel]:
    """The models of an experiment that have a history of training, by name."""
    summary = results / "summary.csv"
    scores = read_summary(summary).dropna(subset=["value"]) if summary.is_file() else None
    for path in sorted(results.glob(f"*/*/{HISTORY}")):
        folder = path.parent
        card = read_json(folder / CARD) if (folder / CARD).is_file() else {}
        history = read_history(path).drop(columns="phase", errors="ignore").astype(float).to_dict("records")
        own = [] if scores is None else scores[scores["model"] == folder.name].to_dict("records")
        yield TrackedModel(
            f"{folder.parent.name}/{folder.name}",
            dict(leaves(card.get("settings", {}))),
            {
                int(row.pop("epoch")): {str(key): value for key, value in row.items() if value == value}
                for row in history
            },
            {"/".join(filter(None, (row["split"], row["decoding"], row["metric"]))): row["value"] for row in own},
        )


def to_tensorboard(_: str, models: list[TrackedModel], folder: Path) -> str:
    """An event file for each model. Event files of an earlier call are replaced."""
    from torch.utils.tensorboard import SummaryWriter

    for model in models:
        place = folder / model.name
        for old in place.glob("events.out.tfevents.*"):
            old.unlink()
        with SummaryWriter(str(place)) as writer:
            for epoch, numbers in model.numbers():
                for key, value in numbers.items():
                    writer.add_scalar(key, value, epoch)
            settings = "\n".join(f"    {key}: {value}" for key, value in model.settings.items())
            writer.add_text("settings", settings)
    return f"tensorboard --logdir {folder}"


def to_mlflow(experiment: str, models: list[TrackedModel], folder: Path) -> str:
    """A run for each model, in a database of MLflow, or on the server that MLFLOW_TRACKING_URI names."""
    import mlflow

    uri = os.environ.get("MLFLOW_TRACKING_URI")
    if not uri:
        folder.mkdir(parents=True, exist_ok=True)
        uri = f"sqlite:///{folder.resolve() / 'mlflow.db'}"
    client = mlflow.MlflowClient(tracking_uri=uri)
    known = client.get_experiment_by_name(experiment)
    number = known.experiment_id if known else client.create_experiment(experiment)
    for model in models:
        run = client.create_run(number, run_name=model.name).info.run_id
        for key, setting in model.settings.items():
            client.log_param(run, key, setting[:500])
        for epoch, numbers in model.numbers():
            for key, value in numbers.items():
                client.log_metric(run, key, value, step=epoch)
        client.set_terminated(run)
    return f"mlflow ui --backend-store-uri {uri}"


def to_trackio(experiment: str, models: list[TrackedModel], _: Path) -> str:
    """A run for each model, in the project of the experiment's name."""
    import trackio

    for model in models:
        trackio.init(project=experiment, name=model.name, config=model.settings)
        for epoch, numbers in model.numbers():
            trackio.log(numbers, step=epoch)
        trackio.finish()
    return f"trackio show --project {experiment}"


app = typer_app(main)
