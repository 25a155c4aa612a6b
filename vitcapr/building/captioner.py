"""Builds the arguments of a captioner's training from its configuration."""

from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.config.captioner import CaptionerPhaseConfig
from vitcapr.errors import UserError
from vitcapr.formats.model import read_model, rebuild
from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.training import History
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.interface import Captioner
from vitcapr.training.reward import CiderReward
from vitcapr.training.self_critical import SelfCritical


def self_critical(
    phases: list[CaptionerPhaseConfig], tokens: TokenTable, vocabulary: Vocabulary, train: np.ndarray
) -> list[SelfCritical | None]:
    """The objective of each phase; None is cross-entropy. The references are counted once, if at all."""
    if all(phase.objective == "cross_entropy" for phase in phases):
        return [None] * len(phases)
    reward = CiderReward(tokens, train, len(vocabulary))
    return [
        SelfCritical(
            reward,
            samples=phase.samples,
            temperature=phase.temperature,
            max_length=phase.max_length,
            start=vocabulary.start,
            end=vocabulary.end,
            pad=vocabulary.pad,
            forbidden=[] if vocabulary.unknown is None else [vocabulary.unknown],
        )
        if phase.objective == "self_critical"
        else None
        for phase in phases
    ]


def start_from(model: Captioner, architecture: dict[str, Any], folder: Path) -> None:
    """Give ``model`` the weights of the captioner in ``folder``.

    Raises:
        UserError: that captioner has another architecture.
    """
    weights, card = read_model(folder)
    there = {**card["architecture"], "dropout": architecture["dropout"]}
    for key in sorted(architecture.keys() | there.keys()):
        if architecture.get(key) != there.get(key):
            raise UserError(
                f"a captioner with {key} {architecture.get(key)} cannot start from one with {there.get(key)}",
                where=folder,
                remedy="give both captioners the same architecture",
            )
    rebuild(folder, lambda _: model, card, weights)


def history_with_rewards(history: History, phases: list[CaptionerPhaseConfig]) -> History:
    """A row an epoch; in a self-critical phase, minus the loss is the mean reward and stands in ``train_reward``."""
    if all(phase.objective == "cross_entropy" for phase in phases):
        return history
    rows: list[dict[str, float | str]] = []
    for row in history:
        rest = dict(row)
        loss = float(rest.pop("train_loss"))
        rewarded = phases[int(row["phase"]) - 1].objective == "self_critical"
        measured: dict[str, float | str] = {
            "epoch": rest.pop("epoch"),
            "phase": rest.pop("phase"),
            "train_loss": "" if rewarded else loss,
            "train_reward": -loss if rewarded else "",
        }
        rows.append(measured | rest)
    return rows
