"""Embeds decoded pictures and captions with a fine-tuned dual encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from vitcapr.batches.augment import PixelInput
from vitcapr.batches.tokenised import TowerCaptions, TowerReader
from vitcapr.config.finetuned_dual_encoder import FinetuneSettings
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
from vitcapr.retrieval.finetuned_towers import build_finetuned, untrained_finetuned
from vitcapr.store.layout import PIXELS
from vitcapr.store.reader import FeatureStore, open_features


@dataclass(frozen=True)
class FinetunedEmbedder:
    """A fine-tuned dual encoder in evaluation mode, with the tokenizers of its text towers."""

    model: DualEncoder
    readers: Mapping[str, TowerReader]
    device: torch.device
    tags: TagTable | None = None

    def embed_split(
        self, store: FeatureStore, data: Manifest, split: str, pairs: Path | None, reporter: Reporter
    ) -> Embeddings:
        """The captions of a split in the languages of the towers, and their images; see :func:`captions_to_read`."""
        languages = [language for reader in self.readers.values() for language in reader.languages]
        captions = captions_to_read(data, languages, pairs, split)
        tokens = TowerCaptions(captions, self.readers, self.tags)
        images = embed_rows(self.model, [store], self.device, PixelInput(preprocessing_of(store.attributes)))
        texts = embed_texts(self.model, lambda rows: tokens.read(rows.tolist()), self.device)
        return embed_split(images, texts, captions, reporter)


def open_finetuned(
    folder: Path, store: FeatureStore, device: torch.device, tags: TagTable | None = None
) -> FinetunedEmbedder:
    """The fine-tuned dual encoder in ``folder``, for pixels of the preprocessing that it was trained on."""
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
    model = rebuild(folder, build_finetuned, card, weights)
    readers = {
        name: TowerReader.from_description(values) for name, values in read_tower_readers(folder / READERS).items()
    }
    check_tags(model, tags)
    return FinetunedEmbedder(model.to(device).eval(), readers, device, tags)


def open_untrained(
    settings: FinetuneSettings,
    store: FeatureStore,
    source: str,
    tokenizers: Mapping[str, Path],
    device: torch.device,
    tags: TagTable | None = None,
) -> FinetunedEmbedder:
    """The dual encoder of a configuration before its training; see :func:`untrained_finetuned`."""
    torch.manual_seed(settings.seed)
    model, _, readers, _ = untrained_finetuned(settings, store, source, tokenizers)
    check_tags(model, tags)
    return FinetunedEmbedder(model.to(device).eval(), readers, device, tags)


def check_tags(model: DualEncoder, tags: TagTable | None) -> None:
    """A text tower that adds parts of speech needs them."""
    if tags is None and any(getattr(tower, "tags", None) is not None for tower in finetuned_towers(model)):
        raise UserError("a text tower adds parts of speech", remedy="run the stage tag_words and give --tags")


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
