"""Embeds decoded pictures and captions with a fine-tuned dual encoder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from vitcapr.batches.augment import PixelInput
from vitcapr.batches.tokenised import TowerCaptions, TowerReader
from vitcapr.encoders.photographs import preprocessing_of
from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import READERS, read_model, read_tower_readers, rebuild
from vitcapr.formats.pairs import read_pair_table
from vitcapr.formats.tokens import TagTable
from vitcapr.models.dual_encoder import DualEncoder
from vitcapr.models.finetuned_towers import finetuned_towers
from vitcapr.progress import Reporter
from vitcapr.retrieval.embedder import embed_rows, embed_split, embed_texts
from vitcapr.retrieval.finetuned_towers import build_finetuned
from vitcapr.store.layout import PIXELS
from vitcapr.store.reader import FeatureStore, open_features


def embed_split_by_towers(
    model: DualEncoder,
    readers: Mapping[str, TowerReader],
    store: FeatureStore,
    captions: pd.DataFrame,
    tags: TagTable | None,
    device: torch.device,
    reporter: Reporter,
) -> Embeddings:
    """The captions of :func:`captions_to_read` and their images, by a fine-tuned dual encoder in evaluation mode.

    Args:
        readers: the tokenizer of each text tower.
        store: the pixels of the images.
        tags: parts of speech, if a text tower adds them.
    """
    check_tags(model, tags)
    model.to(device).eval()
    tokens = TowerCaptions(captions, readers, tags)
    images = embed_rows(model, [store], device, PixelInput(preprocessing_of(store.attributes)))
    texts = embed_texts(model, lambda rows: tokens.read(rows.tolist()), device)
    return embed_split(images, texts, captions, reporter)


def open_finetuned(folder: Path, store: FeatureStore) -> tuple[DualEncoder, dict[str, TowerReader]]:
    """The fine-tuned dual encoder in ``folder`` and the tokenizers of its text towers.

    Raises:
        UserError: there is none, or it was trained on pixels of another preprocessing than those of ``store``.
    """
    weights, card = read_model(folder)
    architecture: Any = card.get("architecture", {})
    if "texts" not in architecture:
        raise UserError(
            "not a fine-tuned dual encoder", where=folder, remedy="give the folder of one of finetuned_dual_encoders"
        )
    prepared = preprocessing_of(store.attributes).describe()
    if prepared != card["preprocessing"]:
        raise UserError(
            "the preprocessing differs from that of the training",
            where=folder,
            remedy="decode the pictures for its backbone",
        )
    described = read_tower_readers(folder / READERS)
    readers = {name: TowerReader.from_description(values) for name, values in described.items()}
    return rebuild(folder, build_finetuned, card, weights), readers


def check_tags(model: DualEncoder, tags: TagTable | None) -> None:
    """A text tower that adds parts of speech needs them."""
    if tags is None and any(getattr(tower, "tags", None) is not None for tower in finetuned_towers(model)):
        raise UserError("a text tower adds parts of speech", remedy="run the stage tag_words and give tags")


def open_pixels(path: Path, data: Manifest) -> FeatureStore:
    """The store of the pixels of this data set, by its sealed manifest."""
    store = open_features(path)
    store.check_rows("image_id", data)
    store.check_width(PIXELS, 3)
    return store


def captions_to_read(data: Manifest, languages: Sequence[str], pairs: Path | None, split: str | None) -> pd.DataFrame:
    """The captions of a split, or of all, in some languages; with ``pairs``, also their texts before cleaning."""
    captions = data.captions_of(split)
    captions = captions[captions["language"].isin(languages)].reset_index(drop=True)
    if pairs is None:
        return captions
    raw = read_pair_table(pairs, data.captions["caption_id"].tolist())["raw"].to_numpy()
    return captions.assign(raw=raw[captions["caption_row"]])
