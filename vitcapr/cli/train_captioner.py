"""Train a captioner on a feature store."""

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from vitcapr.cli.parts.options import (
    Features,
    Log,
    ManifestFile,
    ModelFolder,
    Settings,
    StartingVectors,
    TokensFile,
    TrainingCode,
    VocabularyFile,
)
from vitcapr.cli.parts.ranks import are_to_be_started, reporter_of_rank, start_ranks
from vitcapr.cli.parts.recipe import recipe_of
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.captioner import CaptionerPhaseConfig, TrainCaptionerSettings
from vitcapr.data.manifest import read_manifest
from vitcapr.errors import UserError
from vitcapr.features.encoders.precision import dtype_name, resolve_device, resolve_dtype
from vitcapr.features.store.reader import open_features
from vitcapr.files import sha256_bytes, sha256_file
from vitcapr.memory import keep_freed_memory
from vitcapr.model_folder import WEIGHTS, read_model
from vitcapr.models.captioners import Captioner, build_captioner
from vitcapr.text.tokens import TokenTable
from vitcapr.text.vocabulary import Vocabulary
from vitcapr.training.captioner import CaptionerTask
from vitcapr.training.distributed import joined
from vitcapr.training.outcome import History, history_csv, train_into
from vitcapr.training.reward import CiderReward
from vitcapr.training.self_critical import SelfCritical
from vitcapr.training.validation import GreedyCider
from vitcapr.training.word_vectors import start_embedding


def main(
    settings: Settings,
    features: Features,
    manifest: ManifestFile,
    tokens: TokensFile,
    vocabulary: VocabularyFile,
    output_dir: ModelFolder,
    word_vectors: StartingVectors = None,
    start_from: Annotated[Path | None, typer.Option(help="The folder of a captioner to start from.")] = None,
    code: TrainingCode = "",
    log: Log = None,
) -> None:
    """Train a captioner; stopped by a signal, the same command continues it bit for bit."""
    keep_freed_memory()
    chosen = parse_settings(TrainCaptionerSettings, settings)
    captioner, training = chosen.captioner, chosen.captioner.training
    device = resolve_device(training.device)
    if are_to_be_started(training.processes):
        start_ranks("train_captioner", training.processes, device, sys.argv[1:])
        return
    with joined(device), reporter_of_rank(log) as reporter:
        images, store = read_manifest(manifest), open_features(features)
        words, table = Vocabulary.read(vocabulary), TokenTable.read(tokens)
        dtype = resolve_dtype(training.precision, device)
        inputs = {
            "features": store.fingerprint,
            "tokens": sha256_file(tokens),
            "vocabulary": sha256_file(vocabulary),
            "word_vectors": None if word_vectors is None else sha256_file(word_vectors),
            "start_from": None if start_from is None else sha256_file(start_from / WEIGHTS),
            "images": sha256_bytes("\n".join(images.images["split"]).encode()),
        }
        architecture = {
            "kind": captioner.architecture,
            "vocabulary": len(words),
            "feature_dim": store["cls"].shape[-1],
            **captioner.arguments(),
        }
        torch.manual_seed(captioner.seed_in(chosen.seed))
        model = build_captioner(architecture)
        if word_vectors is not None:
            start_embedding(model.reader.embedding, word_vectors, "the captioner's embedding_dim")
        if start_from is not None:
            _start(model, architecture, start_from)
        longest = max(phase.max_length for phase in training.phases)
        task = CaptionerTask(
            model,
            store,
            table,
            train=images.rows("train"),
            validation=images.rows("validation"),
            batch_images=[phase.batch_images for phase in training.phases],
            max_length=[phase.max_length for phase in training.phases],
            label_smoothing=training.label_smoothing,
            seed=captioner.seed_in(chosen.seed),
            device=device,
            self_critical=_self_critical(training.phases, table, words, images.rows("train")),
            scorer=GreedyCider(
                store,
                table,
                words,
                images.rows("validation"),
                max_length=longest,
                batch_images=training.phases[-1].batch_images,
                device=device,
            )
            if training.select_by == "cider"
            else None,
        )
        reporter.line(
            f"{captioner.architecture}: {sum(p.numel() for p in model.parameters()):,} weights, "
            f"{len(words):,} words, {dtype_name(dtype)} on {device}"
        )
        train_into(
            output_dir,
            task,
            recipe_of(training, select_by=training.select_by),
            card={
                "architecture": architecture,
                "backbone": captioner.backbone,
                "code": code,
                "inputs": inputs,
                "settings": chosen.canonical(),
            },
            device=device,
            dtype=dtype,
            reporter=reporter,
            spell=lambda history: history_with_rewards(history, training.phases),
        )


def _self_critical(
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


def _start(model: Captioner, architecture: dict[str, Any], folder: Path) -> None:
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
    model.load_state_dict(weights)


def history_with_rewards(history: History, phases: list[CaptionerPhaseConfig]) -> str:
    """A row an epoch; in a self-critical phase, minus the loss is the mean reward and stands in ``train_reward``."""
    if all(phase.objective == "cross_entropy" for phase in phases):
        return history_csv(history)
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
    return history_csv(rows)


if __name__ == "__main__":
    launch(main, shelve=["output_dir"])
