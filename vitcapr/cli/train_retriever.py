"""Train a retriever, a dual encoder of images and captions, on a feature store."""

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from vitcapr.artefacts.manifest import Manifest, read_manifest
from vitcapr.artefacts.tokens import TokenTable
from vitcapr.artefacts.vocabulary import Vocabulary
from vitcapr.building.retriever import architecture_of, train_dual_encoder
from vitcapr.cli.parts.options import (
    Features,
    Log,
    ManifestFile,
    Settings,
    StartingVectors,
    TokensFile,
    TrainingCode,
    Views,
    VocabularyFile,
)
from vitcapr.cli.parts.ranks import are_to_be_started, reporter_of_rank, start_ranks
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.retriever import RetrieverConfig, TrainRetrieverSettings
from vitcapr.errors import UserError
from vitcapr.features.batches.pairs import FeatureAndWordTexts, FeatureTexts, Texts, WordTexts, draw_pairs
from vitcapr.features.encoders.precision import resolve_device, resolve_dtype
from vitcapr.features.store.reader import FeatureStore, open_features
from vitcapr.files import sha256_bytes, sha256_file
from vitcapr.models.dual_encoder import DualEncoder
from vitcapr.models.text_towers import FeatureTower
from vitcapr.retrieval.views import open_views
from vitcapr.training.distributed import joined
from vitcapr.training.word_vectors import start_embedding


def main(
    settings: Settings,
    features: Features,
    manifest: ManifestFile,
    tokens: TokensFile,
    vocabulary: VocabularyFile,
    output_dir: Annotated[
        Path, typer.Option(help="Receives best.safetensors, card.json, history.csv, sweep.csv, gpu.csv and last/.")
    ],
    view: Views = None,
    text_features: Annotated[
        Path | None, typer.Option(help="The sealed manifest.json of the text features, for a tower that reads them.")
    ] = None,
    word_vectors: StartingVectors = None,
    code: TrainingCode = "",
    log: Log = None,
) -> None:
    """Train a retriever; stopped by a signal, the same command continues it bit for bit."""
    chosen = parse_settings(TrainRetrieverSettings, settings)
    retriever, training = chosen.retriever, chosen.retriever.training
    device = resolve_device(training.device)
    if are_to_be_started(training.processes):
        start_ranks("train_retriever", training.processes, device, sys.argv[1:])
        return
    with joined(device), reporter_of_rank(log) as reporter:
        data = read_manifest(manifest)
        views = open_views(data, retriever.views, features, view)
        store = views[0]
        words, table = Vocabulary.read(vocabulary), TokenTable.read(tokens)
        sentences = _text_store(text_features, data, retriever)
        dtype = resolve_dtype(training.precision, device)
        inputs = {
            "features": store.fingerprint,
            "views": [further.fingerprint for further in views[1:]],
            "tokens": sha256_file(tokens),
            "vocabulary": sha256_file(vocabulary),
            "text_features": None if sentences is None else sentences.fingerprint,
            "word_vectors": None if word_vectors is None else sha256_file(word_vectors),
            "images": sha256_bytes("\n".join(data.images["split"]).encode()),
        }
        trained_on = _drawn(table.image_row, data.rows("train"), training.pairs, training.pairs_seed)
        if trained_on is not None:
            table = table.select(trained_on)
        text_dim = None if sentences is None else sentences["text"].shape[-1]
        architecture = architecture_of(retriever, store["cls"].shape[-1], text_dim=text_dim, vocabulary=len(words))

        def begin(encoder: DualEncoder) -> None:
            if word_vectors is None:
                return
            if isinstance(encoder.text, FeatureTower):
                raise UserError(
                    "a text tower of kind features has no word embedding", remedy="leave out --word-vectors"
                )
            start_embedding(encoder.text.embedding, word_vectors, "the retriever's text.word_dim")

        train_dual_encoder(
            output_dir,
            retriever,
            architecture,
            views,
            _texts(retriever, table, sentences),
            train=data.rows("train"),
            validation=data.rows("validation"),
            seed=retriever.seed_in(chosen.seed),
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
            begin=begin,
        )


def _drawn(image_row: np.ndarray, train: np.ndarray, pairs: int | None, seed: int) -> np.ndarray | None:
    """Which captions are used, where not all are.

    Raises:
        UserError: the training split has fewer captions than are to be drawn.
    """
    if pairs is None:
        return None
    try:
        return draw_pairs(image_row, train, pairs, seed)
    except ValueError as error:
        raise UserError(str(error), where="training.pairs", remedy="ask for fewer, or null for all") from error


def _text_store(path: Path | None, data: Manifest, retriever: RetrieverConfig) -> FeatureStore | None:
    """The store of text features, if the text tower reads one.

    Raises:
        UserError: one is given and not read, or read and not given, or it is of other captions.
    """
    kind = retriever.text.kind
    if not retriever.text.reads_features:
        if path is not None:
            raise UserError(f"a text tower of kind {kind} reads no text features", remedy="leave out --text-features")
        return None
    if path is None:
        raise UserError(f"a text tower of kind {kind} needs --text-features", remedy="run extract_text and give them")
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
    return {"source": made["backbone"], "output": made.get("output", "hidden")} | {
        name: made[name] for name in ("revision", "weights_sha256", "pool", "max_length", "dtype")
    }


def _texts(retriever: RetrieverConfig, table: TokenTable, sentences: FeatureStore | None) -> Texts:
    """The captions of the token table, whichever form the text tower takes."""
    arrays: dict[str, np.ndarray] = {"ids": table.ids, "offsets": table.offsets, "image_row": table.image_row}
    if sentences is not None and retriever.text.kind == "features_and_words":
        return FeatureAndWordTexts(sentences["text"], table.caption_row, arrays, retriever.text.max_length)
    if sentences is not None:
        return FeatureTexts(sentences["text"], table.caption_row, table.image_row)
    return WordTexts(arrays, retriever.text.max_length)


if __name__ == "__main__":
    launch(main, shelve=["output_dir"])
