"""Train a cross-attention reranker on a feature store, against what a trained retriever confuses."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from vitcapr.cli.parts.options import Log, ManifestFile, ModelFolder, Settings, TokensFile, TrainingCode, VocabularyFile
from vitcapr.cli.parts.recipe import recipe_of
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.cross_encoder import CrossEncoderConfig, TrainCrossEncoderSettings
from vitcapr.data.manifest import Manifest, read_manifest
from vitcapr.errors import UserError
from vitcapr.features.batches.captions import captions_of
from vitcapr.features.encoders.precision import dtype_name, resolve_device, resolve_dtype
from vitcapr.features.store.reader import FeatureStore, open_features
from vitcapr.files import sha256_bytes, sha256_file
from vitcapr.memory import keep_freed_memory
from vitcapr.metrics.retrieval_files import check_pool, read_embeddings
from vitcapr.models.cross_attention import CrossEncoder
from vitcapr.progress import Reporter
from vitcapr.text.tokens import TokenTable
from vitcapr.text.vocabulary import Vocabulary
from vitcapr.training.cross_attention import CrossEncoderTask, GroupPhase, Pool, neighbours
from vitcapr.training.outcome import train_into


def main(
    settings: Settings,
    features: Annotated[Path, typer.Option(help="The sealed manifest.json of the feature store, with patches.")],
    manifest: ManifestFile,
    tokens: TokensFile,
    vocabulary: VocabularyFile,
    train: Annotated[Path, typer.Option(help="embeddings.npz of the training split by the retriever.")],
    validation: Annotated[Path, typer.Option(help="embeddings.npz of the validation split by the retriever.")],
    output_dir: ModelFolder,
    text_features: Annotated[
        Path | None, typer.Option(help="The sealed manifest.json of the text features, to read them as well.")
    ] = None,
    code: TrainingCode = "",
    log: Log = None,
) -> None:
    """Train a cross-attention reranker; stopped by a signal, the same command continues it bit for bit."""
    keep_freed_memory()
    chosen = parse_settings(TrainCrossEncoderSettings, settings)
    config, training = chosen.cross_encoder, chosen.cross_encoder.training
    with Reporter(log) as reporter:
        data, store, table = read_manifest(manifest), open_features(features), TokenTable.read(tokens)
        if "patches" not in store:
            raise UserError("the feature store has no patches to look at", where=features)
        sentences = None if text_features is None else open_features(text_features)
        captions = captions_of(table, config.max_length, sentences, data)
        device = resolve_device(training.device)
        dtype = resolve_dtype(training.precision, device)
        architecture = _architecture(config, store, sentences, len(Vocabulary.read(vocabulary)))
        torch.manual_seed(config.seed_in(chosen.seed))
        model = CrossEncoder(**architecture)
        with reporter.track("neighbours", len(data.rows("train")) + len(data.rows("validation")), "images") as tracker:
            pools = [
                _pool(path, data, split, table, training.neighbours, tracker.advance)
                for split, path in (("train", train), ("validation", validation))
            ]
        task = CrossEncoderTask(
            model,
            store,
            captions,
            train=pools[0],
            validation=pools[1],
            phases=[GroupPhase(phase.groups, phase.group_images) for phase in training.phases],
            seed=config.seed_in(chosen.seed),
            device=device,
        )
        reporter.line(
            f"cross-attention: {sum(p.numel() for p in model.parameters()):,} weights, {dtype_name(dtype)} on {device}"
        )
        train_into(
            output_dir,
            task,
            recipe_of(training),
            card={
                "architecture": architecture,
                "code": code,
                "inputs": {
                    "features": store.fingerprint,
                    "images": sha256_bytes("\n".join(data.images["split"]).encode()),
                    "text_features": None if sentences is None else sentences.fingerprint,
                    "tokens": sha256_file(tokens),
                    "train": sha256_file(train),
                    "validation": sha256_file(validation),
                    "vocabulary": sha256_file(vocabulary),
                },
                "settings": chosen.canonical(),
            },
            device=device,
            dtype=dtype,
            reporter=reporter,
        )


def _architecture(
    config: CrossEncoderConfig, store: FeatureStore, sentences: FeatureStore | None, vocabulary: int
) -> dict[str, Any]:
    """The arguments of :class:`CrossEncoder`."""
    return {
        "feature_dim": store["patches"].shape[-1],
        "text_dim": None if sentences is None else sentences["text"].shape[-1],
        "vocabulary": vocabulary,
        "max_length": config.max_length,
        "grid": list(store.grid),
        "pool": config.pool,
        "width": config.width,
        "heads": config.heads,
        "layers": config.layers,
        "dropout": config.dropout,
    }


def _pool(path: Path, data: Manifest, split: str, table: TokenTable, count: int, advance: Any) -> Pool:
    """Raises:
    UserError: the embeddings are not of the split, or it has too few images.
    """
    found = read_embeddings(path)
    check_pool(found, data, split, path)
    if len(found.images) <= count:
        raise UserError(
            f"{count} neighbours of each image, but the split '{split}' has {len(found.images)} images",
            remedy="lower cross_encoders.NAME.training.neighbours",
        )
    place_of_row = {int(row): place for place, row in enumerate(table.caption_row)}
    places = np.array([place_of_row[int(row)] for row in found.caption_row], np.int64)
    starts = np.searchsorted(found.caption_image, np.arange(1, len(found.images)))
    near = neighbours(found.images, found.captions, found.caption_image, count, advance)
    return Pool(found.image_row.astype(np.int64), near, tuple(np.split(places, starts)))


if __name__ == "__main__":
    launch(main, shelve=["output_dir"])
