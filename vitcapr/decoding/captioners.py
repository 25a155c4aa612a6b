"""Trained captioners on disk."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from vitcapr.batches.sources import check_widths
from vitcapr.errors import UserError
from vitcapr.formats.model import CARD, read_card, read_model, rebuild
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.captioners import build_captioner
from vitcapr.models.interface import Captioner
from vitcapr.store.reader import FeatureStore


def open_captioner(folder: Path, words: Vocabulary, dtype: torch.dtype) -> Captioner:
    """The captioner in ``folder``, on the CPU.

    Args:
        dtype: of its arithmetic.

    Raises:
        UserError: the folder holds none, or one that was trained with another vocabulary or language model.
    """
    weights, card = read_model(folder)
    known = card["architecture"].get("vocabulary")
    if known != len(words):
        raise UserError(
            f"the captioner has {known} words and the vocabulary {len(words)}",
            where=folder,
            remedy="give the vocabulary it was trained with, or train it again",
        )
    network = {"network": _network(card, words, dtype)} if "language_model" in card else {}
    return rebuild(folder, lambda architecture: build_captioner(architecture, **network), card, weights)


def _network(card: Mapping[str, Any], words: Vocabulary, dtype: torch.dtype) -> Any:
    """The network of a captioner's card: the checkpoint of its training, or of its name on another machine."""
    trained_with, given = card["language_model"], card["settings"]["captioner"]["language_model"]["source"]
    source = given if Path(given).is_dir() else trained_with["source"]
    # By name: the code of language models concerns no other captioner.
    networks = import_module("vitcapr.encoders.networks.language_model")
    network, described = networks.open_network(source, trained_with["revision"] or "main", words, dtype)
    if described["weights_sha256"] != trained_with["weights_sha256"]:
        what, remedy = "the captioner was trained with other weights of its language model", "give the same checkpoint"
        raise UserError(what, where=source, remedy=remedy)
    return network


def check_features(model: Captioner, folder: Path, features: FeatureStore, attends: bool) -> None:
    """Check that the captioner in ``folder`` can read a store and, if its attention is kept, attends to places.

    Raises:
        UserError: it was trained on other features, or does not attend to places.
    """
    check_widths(features, model.arrays, read_card(folder / CARD)["architecture"])
    if attends and not model.attends:
        raise UserError(
            "this captioner does not attend to patches",
            where=folder,
            remedy="omit attention, and set decoding.attention to false",
        )
    if attends and features.grid == (0, 0):
        raise UserError(
            "these features have no patch grid, so attention has no position in the picture",
            where=features.path,
            remedy="omit attention, or use a backbone with output: hidden",
        )
