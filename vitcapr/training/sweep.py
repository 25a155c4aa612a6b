"""Several trainings that differ in the learning rate. The best one on the validation split is kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from vitcapr.formats.training import SWEEP, gpu_csv, write_sweep
from vitcapr.progress import Reporter
from vitcapr.training.loop import Diverged, Position, Recipe, Task
from vitcapr.training.outcome import CHECKPOINT, Trained, leave, train_from

Batch = TypeVar("Batch")


def with_rate(recipe: Recipe, rate: float) -> Recipe:
    """The recipe with ``rate`` in its first phase; those of the other phases keep their ratio to it."""
    factor = rate / recipe.phases[0].learning_rate
    first, *others = recipe.phases
    scaled = (replace(phase, learning_rate=factor * phase.learning_rate) for phase in others)
    return replace(recipe, phases=(replace(first, learning_rate=rate), *scaled))


def sweep_into(
    folder: Path,
    make_task: Callable[[], Task[Batch]],
    recipe: Recipe,
    rates: Sequence[float],
    *,
    card: Mapping[str, Any],
    device: torch.device,
    dtype: torch.dtype,
    reporter: Reporter,
    part: str = "",
    rates_of: Callable[[nn.Module], Iterable[tuple[list[nn.Parameter], float]]] | None = None,
) -> None:
    """Train once for each learning rate and leave the best; one rate is a training like any other.

    The arguments not named here are those of :func:`vitcapr.training.outcome.train_into`.

    ``sweep.csv`` tells every rate's best epoch, by what and how well it was chosen; a rate at which training diverges
    has no epoch, and is not chosen. Stopped by a signal, the same call continues: what has been trained to its end is
    not trained again.

    Args:
        make_task: a task with an untrained model, the same every time.
        rates_of: the ``rates`` of an untrained model.

    Raises:
        Diverged: at every rate.
    """
    lower_is_better = recipe.select_by.endswith("loss")
    rows: list[dict[str, Any]] = []
    best: Trained | None = None
    diverged = 0
    for rate in rates:
        if len(rates) > 1:
            reporter.line(f"learning rate {rate:g}")
        task = make_task()
        try:
            trained = train_from(
                folder / CHECKPOINT / (f"{rate!r}" if len(rates) > 1 else ""),
                task,
                with_rate(recipe, rate),
                card=card,
                device=device,
                dtype=dtype,
                reporter=reporter,
                rates=None if rates_of is None else rates_of(task.model),
            )
        except Diverged as error:
            diverged += 1
            if diverged == len(rates):
                raise
            reporter.line(f"learning rate {rate:g}: {error.what}")
            rows.append({"learning_rate": rate, "chosen": 0})
            continue
        if trained is None:
            continue
        rows.append({"learning_rate": rate, "best_epoch": trained.end.best_epoch, **_scores(trained.end)})
        score, so_far = trained.end.best_score, None if best is None else best.end.best_score
        assert score is not None
        if so_far is None or (score < so_far if lower_is_better else score > so_far):
            best = trained
            for number, row in enumerate(rows, 1):
                row["chosen"] = int(number == len(rows))
        else:
            rows[-1]["chosen"] = 0
    if best is not None:
        write_sweep(folder / SWEEP, rows)
        leave(folder, best, recipe.select_by, card=card, dtype=dtype, reporter=reporter, part=part)


def leave_untrained(
    folder: Path,
    task: Task[Batch],
    select_by: str,
    *,
    card: Mapping[str, Any],
    dtype: torch.dtype,
    reporter: Reporter,
    part: str,
) -> None:
    """The files of a model that has nothing to learn: its weights as they are, and its scores on validation."""
    model = task.model.eval()
    with torch.inference_mode():
        scores = task.validate()
    weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    trained = Trained(Position(best_score=scores[select_by]), weights, gpu_csv("nothing was trained"))
    write_sweep(folder / SWEEP, [])
    leave(folder, trained, select_by, card=card, dtype=dtype, reporter=reporter, part=part)


def _scores(end: Position) -> dict[str, float]:
    """Of the best epoch."""
    return end.history[end.best_epoch - 1]
