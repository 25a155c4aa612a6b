"""Loads a trained captioner and checks it against the vocabulary and the features."""

from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.formats.model import read_model, rebuild
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.captioners import build_captioner
from vitcapr.models.interface import Captioner
from vitcapr.store.reader import FeatureStore


def open_captioner(folder: Path, vocabulary: Vocabulary, features: FeatureStore) -> Captioner:
    """The captioner in ``folder``, on the CPU.

    Raises:
        UserError: the folder holds none, or one that was trained with another vocabulary or other features.
    """
    weights, card = read_model(folder)
    architecture = card["architecture"]
    if architecture.get("vocabulary") != len(vocabulary):
        raise UserError(
            f"the captioner has {architecture.get('vocabulary')} words and the vocabulary {len(vocabulary)}",
            where=folder,
            remedy="give the vocabulary it was trained with, or train it again",
        )
    model = rebuild(folder, build_captioner, card, weights)
    for name in model.arrays:
        if name not in features:
            raise UserError(
                f"the feature store has no '{name}'", where=features.path, remedy=f"it has {', '.join(features)}"
            )
        width = features[name].shape[-1]
        if width != architecture["feature_dim"]:
            raise UserError(
                f"the captioner reads features of width {architecture['feature_dim']}, these are {width} wide",
                where=features.path,
                remedy="give the features it was trained on",
            )
    return model
