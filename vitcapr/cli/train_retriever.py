"""Train a retriever, a dual encoder of images and captions, on a feature store."""

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from vitcapr.cli.ranks import are_to_be_started, reporter_of_rank, start_ranks
from vitcapr.cli.stage import Log, Settings, launch
from vitcapr.config.base import parse_settings
from vitcapr.config.retriever import RetrieverConfig, RetrieverTrainingConfig, TrainRetrieverSettings
from vitcapr.data.manifest import Manifest, read_manifest
from vitcapr.errors import UserError
from vitcapr.features.pairs import FeatureTexts, Texts, WordTexts
from vitcapr.features.precision import dtype_name, resolve_device, resolve_dtype
from vitcapr.features.store import FeatureStore, open_features
from vitcapr.files import sha256_bytes, sha256_file
from vitcapr.memory import keep_freed_memory
from vitcapr.models.dual_encoder import build_dual_encoder
from vitcapr.models.text_towers import WordTower
from vitcapr.text.tokens import TokenTable
from vitcapr.text.vocabulary import Vocabulary
from vitcapr.training.distributed import joined
from vitcapr.training.hard_negatives import MomentumQueue
from vitcapr.training.loop import Recipe
from vitcapr.training.outcome import train_into
from vitcapr.training.retriever import PairPhase, RetrieverTask
from vitcapr.training.schedule import Phase
from vitcapr.training.word_vectors import start_embedding


def main(
    settings: Settings,
    features: Annotated[Path, typer.Option(help="The sealed manifest.json of the feature store.")],
    manifest: Annotated[Path, typer.Option(help="The data set's manifest.json.")],
    tokens: Annotated[Path, typer.Option(help="The captions as numbers, tokens.npz.")],
    vocabulary: Annotated[Path, typer.Option(help="vocabulary.json.")],
    output_dir: Annotated[
        Path, typer.Option(help="Receives best.safetensors, card.json, history.csv, gpu.csv and last/.")
    ],
    text_features: Annotated[
        Path | None, typer.Option(help="The sealed manifest.json of the text features, for a tower that reads them.")
    ] = None,
    word_vectors: Annotated[Path | None, typer.Option(help="vectors.npy to start the embedding from.")] = None,
    code: Annotated[str, typer.Option(help="Hash of the stage's code; a state of other code is not continued.")] = "",
    log: Log = None,
) -> None:
    """Train a retriever; stopped by a signal, the same command continues it bit for bit."""
    keep_freed_memory()
    chosen = parse_settings(TrainRetrieverSettings, settings)
    retriever, training = chosen.retriever, chosen.retriever.training
    device = resolve_device(training.device)
    if are_to_be_started(training.processes):
        start_ranks("train_retriever", training.processes, device, sys.argv[1:])
        return
    with joined(device), reporter_of_rank(log) as reporter:
        data, store = read_manifest(manifest), open_features(features)
        words, table = Vocabulary.read(vocabulary), TokenTable.read(tokens)
        sentences = _text_store(text_features, data, retriever)
        dtype = resolve_dtype(training.precision, device)
        inputs = {
            "features": store.fingerprint,
            "tokens": sha256_file(tokens),
            "vocabulary": sha256_file(vocabulary),
            "text_features": None if sentences is None else sentences.fingerprint,
            "word_vectors": None if word_vectors is None else sha256_file(word_vectors),
            "images": sha256_bytes("\n".join(data.images["split"]).encode()),
        }
        architecture = _architecture(retriever, store, sentences, len(words))
        torch.manual_seed(chosen.own_seed)
        encoder = build_dual_encoder(architecture)
        if word_vectors is not None:
            if not isinstance(encoder.text, WordTower):
                raise UserError(
                    "a text tower of kind features has no word embedding", remedy="leave out --word-vectors"
                )
            start_embedding(encoder.text.embedding, word_vectors, "the retriever's text.word_dim")
        task = RetrieverTask(
            encoder,
            store,
            _texts(retriever, table, sentences),
            train=data.rows("train"),
            validation=data.rows("validation"),
            phases=[
                PairPhase(
                    p.batch_images,
                    p.captions_per_image,
                    p.objective,
                    p.margin,
                    p.hard_negatives,
                    p.hard_negative_weight,
                )
                for p in training.phases
            ],
            seed=chosen.own_seed,
            device=device,
            queue=MomentumQueue(encoder.text, retriever.embedding_dim, training.queue, training.queue_momentum)
            if training.queue
            else None,
        )
        recipe = _recipe(training)
        reporter.line(
            f"{retriever.image.pool} and {retriever.text.kind}: {sum(p.numel() for p in encoder.parameters()):,} "
            f"weights, {retriever.embedding_dim} dimensions, {dtype_name(dtype)} on {device}"
        )
        train_into(
            output_dir,
            task,
            recipe,
            card={
                "architecture": architecture,
                "backbone": retriever.backbone,
                "code": code,
                "inputs": inputs,
                "settings": chosen.canonical(),
                "text_encoder": None if sentences is None else _text_encoder(sentences),
            },
            device=device,
            dtype=dtype,
            reporter=reporter,
            part="encoder",
        )


def _recipe(training: RetrieverTrainingConfig) -> Recipe:
    return Recipe(
        phases=tuple(
            Phase(p.epochs, p.learning_rate, p.schedule, p.final_fraction, p.warmup_steps, p.step_epochs, p.gamma)
            for p in training.phases
        ),
        optimizer=training.optimizer,
        weight_decay=training.weight_decay,
        clip_norm=training.clip_norm,
        ema_decay=training.ema_decay,
        patience=training.patience,
        select_by=f"validation_{training.select_by}",
        save_every_steps=training.save_every_steps,
    )


def _text_store(path: Path | None, data: Manifest, retriever: RetrieverConfig) -> FeatureStore | None:
    """The store of text features, if the text tower reads one.

    Raises:
        UserError: one is given and not read, or read and not given, or it is of other captions.
    """
    kind = retriever.text.kind
    if kind != "features":
        if path is not None:
            raise UserError(f"a text tower of kind {kind} reads no text features", remedy="leave out --text-features")
        return None
    if path is None:
        raise UserError("a text tower of kind features needs --text-features", remedy="run extract_text and give them")
    store = open_features(path)
    if store.identity != "caption_id" or store.ids != data.captions["caption_id"].tolist():
        raise UserError(
            f"the text features are not those of the captions of the data set {data.dataset}",
            where=path,
            remedy="extract the text features of this data set",
        )
    return store


def _text_encoder(store: FeatureStore) -> dict[str, Any]:
    """What a new sentence needs to be embedded as the stored ones were."""
    made = store.attributes
    return {"source": made["backbone"]} | {
        name: made[name] for name in ("revision", "weights_sha256", "pool", "max_length", "dtype")
    }


def _architecture(
    retriever: RetrieverConfig, store: FeatureStore, sentences: FeatureStore | None, vocabulary: int
) -> dict[str, Any]:
    """What rebuilds the model: see :func:`vitcapr.models.dual_encoder.build_dual_encoder`."""
    image, text = retriever.image, retriever.text
    if sentences is not None:
        text_tower: dict[str, Any] = {
            "kind": "features",
            "feature_dim": sentences["text"].shape[-1],
            "head": text.head,
            "hidden_dim": text.hidden_dim,
            "dropout": text.dropout,
        }
    else:
        text_tower = {
            "kind": "words",
            "vocabulary": vocabulary,
            "word_dim": text.word_dim,
            "hidden_dim": text.hidden_dim,
            "bidirectional": text.kind == "bilstm",
            "pool": text.pool,
            "dropout": text.dropout,
        }
    return {
        "embedding_dim": retriever.embedding_dim,
        "temperature": retriever.temperature,
        "learn_temperature": retriever.learn_temperature,
        "image": {"feature_dim": store["cls"].shape[-1], **image.canonical()},
        "text": text_tower,
    }


def _texts(retriever: RetrieverConfig, table: TokenTable, sentences: FeatureStore | None) -> Texts:
    """The captions of the token table, whichever form the text tower takes."""
    if sentences is not None:
        return FeatureTexts(sentences["text"], table.caption_row, table.image_row)
    arrays: dict[str, np.ndarray] = {"ids": table.ids, "offsets": table.offsets, "image_row": table.image_row}
    return WordTexts(arrays, retriever.text.max_length)


if __name__ == "__main__":
    launch(main, shelve=["output_dir"])
