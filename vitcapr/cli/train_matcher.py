"""Train a matcher, a ViT and BERT-family text models together, on decoded pictures and captions."""

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from vitcapr.cli.parts.matcher import assembled, check_pixels
from vitcapr.cli.parts.named import parse_named
from vitcapr.cli.parts.options import Log, ManifestFile, Pixels, Settings, TagsFile, TrainingCode
from vitcapr.cli.parts.ranks import are_to_be_started, reporter_of_rank, start_ranks
from vitcapr.cli.parts.recipe import recipe_of
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.matcher import MatcherTrainingConfig, TrainMatcherSettings
from vitcapr.data.manifest import read_manifest
from vitcapr.features.batches.augment import Augmentation
from vitcapr.features.batches.pixel_batches import CaptionRows
from vitcapr.features.batches.tokenised import TokenisedCaptions
from vitcapr.features.encoders.photographs import preprocessing_of
from vitcapr.features.encoders.precision import dtype_name, resolve_device, resolve_dtype
from vitcapr.features.store.reader import open_features
from vitcapr.files import sha256_bytes, sha256_file, write_json
from vitcapr.memory import keep_freed_memory
from vitcapr.models.matcher import Matcher, layer_rates
from vitcapr.retrieval.matching import READERS, check_tags
from vitcapr.text.tags import TagTable
from vitcapr.training.distributed import is_first, joined
from vitcapr.training.matcher import MatcherTask, MatchPhase
from vitcapr.training.outcome import train_into


def main(
    settings: Settings,
    pixels: Pixels,
    manifest: ManifestFile,
    source: Annotated[str, typer.Option(help="The image tower's checkpoint: a hub id or a folder.")],
    output_dir: Annotated[
        Path, typer.Option(help="Receives best.safetensors, card.json, readers.json, history.csv, gpu.csv and last/.")
    ],
    tokenizer: Annotated[list[str] | None, typer.Option(help="NAME=tokenizer.json; once for each.")] = None,
    code: TrainingCode = "",
    tags: TagsFile = None,
    log: Log = None,
) -> None:
    """Train a matcher; stopped by a signal, the same command continues it bit for bit."""
    keep_freed_memory()
    chosen = parse_settings(TrainMatcherSettings, settings)
    matcher, training = chosen.matcher, chosen.matcher.training
    tokenizers = parse_named(tokenizer, "--tokenizer") if tokenizer else {}
    device = resolve_device(training.device)
    if are_to_be_started(training.processes):
        start_ranks("train_matcher", training.processes, device, sys.argv[1:])
        return
    with joined(device), reporter_of_rank(log) as reporter:
        data, store = read_manifest(manifest), open_features(pixels)
        check_pixels(store, data, pixels)
        dtype = resolve_dtype(training.precision, device)
        torch.manual_seed(matcher.seed_in(chosen.seed))
        model, architecture, readers, digests = assembled(chosen, store, source, tokenizers)
        words = None if tags is None else TagTable.read(tags)
        check_tags(model, words)
        captions = data.captions_of()
        captions = captions[captions["language"].isin(matcher.languages)].reset_index(drop=True)
        task = MatcherTask(
            model,
            store,
            CaptionRows.of_table(captions),
            TokenisedCaptions(captions, readers, words),
            train=data.rows("train"),
            validation=_first(data.rows("validation"), training.validation_images),
            phases=[MatchPhase(p.batch_images, p.captions_per_image, p.objective, p.shift) for p in training.phases],
            augmentation=None if training.augmentation is None else Augmentation(**training.augmentation.canonical()),
            chunk=training.chunk,
            epoch_batches=training.epoch_batches,
            seed=matcher.seed_in(chosen.seed),
            device=device,
        )
        _prepare(model, training)
        rates = [
            (group.parameters, group.scale) for group in layer_rates(model, training.layer_decay, training.encoder_rate)
        ]
        trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
        reporter.line(
            f"{sum(p.numel() for p in model.parameters()):,} weights, {trained:,} of them trained, "
            f"{len(rates)} rates, {dtype_name(dtype)} on {device}"
        )
        train_into(
            output_dir,
            task,
            recipe_of(training, select_by=training.select_by),
            card={
                "architecture": architecture,
                "backbone": matcher.image.backbone,
                "code": code,
                "inputs": {
                    "pixels": store.fingerprint,
                    "tags": None if tags is None else sha256_file(tags),
                    "checkpoints": digests,
                    "captions": sha256_bytes("\n".join(captions["text"]).encode()),
                    "images": sha256_bytes("\n".join(data.images["split"]).encode()),
                },
                "preprocessing": preprocessing_of(store.attributes).describe(),
                "settings": chosen.canonical(),
            },
            device=device,
            dtype=dtype,
            reporter=reporter,
            rates=rates,
        )
        if is_first():
            write_json(output_dir / READERS, {name: reader.describe() for name, reader in readers.items()})


def _prepare(model: Matcher, training: MatcherTrainingConfig) -> None:
    """How the towers are computed, which changes nothing of what they compute."""
    for tower in model.towers:
        if training.checkpoint_layers:
            encoder: Any = tower.encoder
            encoder.gradient_checkpointing_enable({"use_reentrant": False})
        if training.compile:
            tower.compile()


def _first(rows: np.ndarray, count: int | None) -> np.ndarray:
    return rows if count is None else rows[:count]


if __name__ == "__main__":
    launch(main)
