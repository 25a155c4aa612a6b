"""Write training curves and scores to TensorBoard."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError
from vitcapr.files import read_json
from vitcapr.formats.model import CARD
from vitcapr.formats.scores import read_summary
from vitcapr.formats.training import read_history
from vitcapr.pipeline.fingerprint import leaves
from vitcapr.progress import print_lines


def main(
    results: Annotated[Path, typer.Argument(help="The folder of an experiment: results/NAME.")],
    output: Annotated[Path | None, typer.Option(help="The folder to write to; runs/NAME by default.")] = None,
) -> None:
    """Write training curves, settings and scores of every model for TensorBoard. Files of an earlier call go."""
    histories = sorted(results.glob("*/*/history.csv"))
    if not histories:
        raise UserError("no trained model", where=results, remedy="give the folder of an experiment: results/NAME")
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise UserError("tensorboard is not installed", remedy="pip install 'vitcapr[tensorboard]'") from error
    summary, runs = results / "summary.csv", output or Path("runs") / results.resolve().name
    scores = read_summary(summary).dropna(subset=["value"]).to_dict("records") if summary.is_file() else []
    for path in histories:
        model, epochs = path.parent, read_history(path).drop(columns="phase", errors="ignore").astype(float)
        place = runs / model.parent.name / model.name
        for old in place.glob("events.out.tfevents.*"):
            old.unlink()
        with SummaryWriter(str(place)) as writer:
            for epoch in epochs.to_dict("records"):
                step = int(epoch.pop("epoch"))
                for key, value in epoch.items():
                    if value == value:
                        writer.add_scalar(str(key), value, step)
            for row in scores:
                if row["model"] == model.name:
                    key = "/".join(filter(None, ("score", row["split"], row["decoding"], row["metric"])))
                    writer.add_scalar(key, row["value"], len(epochs))
            card = read_json(model / CARD) if (model / CARD).is_file() else {}
            settings = leaves(card.get("settings", {}))
            writer.add_text("settings", "\n".join(f"    {key}: {value}" for key, value in settings))
    print_lines(f"{len(histories)} models of {results.resolve().name}: tensorboard --logdir {runs}")


app = typer_app(main)
