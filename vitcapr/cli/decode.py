"""Captions of a split, written by a trained captioner."""

from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer
from numpy.typing import NDArray

from vitcapr.cli.parts.options import CaptionerVocabulary, CaptionsOutput, Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.decoding import DecodeSettings
from vitcapr.data.manifest import Manifest, read_manifest
from vitcapr.decoding.batches import feature_batches
from vitcapr.decoding.describe import describe
from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.decoding.results import write_attention, write_captions
from vitcapr.errors import UserError
from vitcapr.features.encoders.precision import autocast, dtype_name, resolve_device, resolve_dtype
from vitcapr.features.store.reader import FeatureStore, open_features
from vitcapr.memory import keep_freed_memory
from vitcapr.model_folder import read_model
from vitcapr.models.captioners import Captioner, build_captioner
from vitcapr.progress import Reporter
from vitcapr.text.vocabulary import Vocabulary


def main(
    features: Annotated[Path, typer.Option(help="Sealed manifest.json of the features the captioner was trained on")],
    manifest: ManifestFile,
    vocabulary: CaptionerVocabulary,
    captioner: Annotated[Path, typer.Option(help="Folder of the trained captioner")],
    split: Annotated[str, typer.Option(help="The split to caption")],
    output: CaptionsOutput,
    attention: Annotated[Path | None, typer.Option(help="attention.npz to write")] = None,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Caption every image of a split."""
    keep_freed_memory()
    decoding = parse_settings(DecodeSettings, settings).decoding
    data = read_manifest(manifest)
    words = Vocabulary.read(vocabulary)
    device = resolve_device(decoding.device)
    dtype = resolve_dtype(decoding.precision, device)
    with open_features(features) as store, Reporter(log) as reporter:
        model = _load(captioner, words, store)
        if attention is not None and not model.attends:
            raise UserError(
                "this captioner does not attend to patches",
                where=captioner,
                remedy="leave out --attention, and set decoding.attention to false",
            )
        if attention is not None and store.grid == (0, 0):
            raise UserError(
                "these features have no grid of patches, so attention has no place in the picture",
                where=features,
                remedy="leave --attention out, or use a backbone with output: hidden",
            )
        rows = _rows(data, split, store, features)
        model = model.to(device).eval()
        method = "greedy" if decoding.beam_size == 1 else f"beam {decoding.beam_size}"
        reporter.line(f"decode: {len(rows)} images, {method}, {dtype_name(dtype)} on {device}")
        found: list[list[Hypothesis]] = []
        with reporter.track("decode", len(rows), "captions") as tracker, torch.inference_mode():
            for batch in feature_batches(store, model.arrays, rows, decoding.batch_images, device):
                with autocast(device, dtype):
                    captions = describe(
                        model,
                        model.encode(batch),
                        words,
                        beam_size=decoding.beam_size,
                        n_best=decoding.n_best,
                        max_length=decoding.max_length,
                        min_length=decoding.min_length,
                        length_penalty=decoding.length_penalty,
                        block_ngram=decoding.block_ngram,
                        keep_attention=attention is not None,
                    )
                found += captions
                tracker.advance(len(captions))
    write_captions(output, data.images["image_id"].iloc[rows].tolist(), found, words.decode, words.words)
    if attention is not None:
        write_attention(attention, rows.tolist(), [candidates[0] for candidates in found], store.grid)


def _load(folder: Path, words: Vocabulary, store: FeatureStore) -> Captioner:
    """The captioner, if it fits the vocabulary and the features.

    Raises:
        UserError: it was trained with others.
    """
    weights, card = read_model(folder)
    architecture = card["architecture"]
    if architecture["vocabulary"] != len(words):
        raise UserError(
            f"the captioner has {architecture['vocabulary']} words and the vocabulary {len(words)}",
            where=folder,
            remedy="give the vocabulary it was trained with, or train it again",
        )
    model = build_captioner(architecture)
    model.load_state_dict(weights)
    for name in model.arrays:
        if name not in store:
            raise UserError(f"the feature store has no '{name}'", where=store.path, remedy=f"it has {', '.join(store)}")
        width = store[name].shape[-1]
        if width != architecture["feature_dim"]:
            raise UserError(
                f"the captioner reads features of width {architecture['feature_dim']}, these are {width} wide",
                where=store.path,
                remedy="give the features it was trained on",
            )
    return model


def _rows(data: Manifest, split: str, store: FeatureStore, features: Path) -> NDArray[np.int64]:
    if store.image_ids != data.images["image_id"].tolist():
        raise UserError(
            f"the features are not those of the data set {data.dataset}",
            where=features,
            remedy="extract the features of this data set",
        )
    rows = data.rows(split)
    if not len(rows):
        raise UserError(f"the data set {data.dataset} has no image in the split '{split}'")
    return rows


if __name__ == "__main__":
    launch(main, shelve=["output", "attention"])
