"""The captions that a retriever learns from, in the form that its text tower reads."""

from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.batches.pairs import FeatureAndWordTexts, FeatureTexts, Texts, WordTexts, draw_pairs
from vitcapr.config.retriever import RetrieverConfig
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.tokens import TokenTable
from vitcapr.store.identity import check_captions
from vitcapr.store.reader import FeatureStore, open_features


def drawn_captions(image_row: np.ndarray, train: np.ndarray, pairs: int | None, seed: int) -> np.ndarray | None:
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


def open_text_features(path: Path | None, data: Manifest, retriever: RetrieverConfig) -> FeatureStore | None:
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
    check_captions(store, data, path)
    return store


def describe_text_encoder(store: FeatureStore) -> dict[str, Any]:
    """What a new sentence needs to be embedded as the stored ones were."""
    made = store.attributes
    return {"source": made["backbone"], "output": made.get("output", "hidden")} | {
        name: made[name] for name in ("revision", "weights_sha256", "pool", "max_length", "dtype")
    }


def texts_of(retriever: RetrieverConfig, table: TokenTable, sentences: FeatureStore | None) -> Texts:
    """The captions of the token table, whichever form the text tower takes."""
    arrays: dict[str, np.ndarray] = {"ids": table.ids, "offsets": table.offsets, "image_row": table.image_row}
    if sentences is not None and retriever.text.kind == "features_and_words":
        return FeatureAndWordTexts(sentences["text"], table.caption_row, arrays, retriever.text.max_length)
    if sentences is not None:
        return FeatureTexts(sentences["text"], table.caption_row, table.image_row)
    return WordTexts(arrays, retriever.text.max_length)
