"""Embeds decoded pictures and captions with a fine-tuned dual encoder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from vitcapr.batches.tokenised import TowerCaptions, TowerReader
from vitcapr.config.finetuned_dual_encoder import FinetuneSettings
from vitcapr.encoders.photographs import preprocessing_of
from vitcapr.encoders.staging import to_device
from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import READERS, read_model, read_tower_readers, rebuild
from vitcapr.formats.pairs import read_pair_table
from vitcapr.formats.tokens import TagTable
from vitcapr.models.finetuned_dual_encoder import FinetunedDualEncoder, FinetunedTextTower
from vitcapr.progress import Reporter
from vitcapr.retrieval.embedder import Embedder, embed_split
from vitcapr.retrieval.finetuned_towers import build_finetuned, untrained_finetuned
from vitcapr.store.layout import PIXELS
from vitcapr.store.reader import FeatureStore, open_features


def embed_pixels(finetuned: FinetunedDualEncoder, pixels: Tensor, chunk: int | None = None) -> Tensor:
    """``pixels: (B, 3, S, S)`` -> (B, E) float32, unit length.

    Args:
        chunk: pictures at a time; where gradients are asked for, what lies between is computed again for them.
    """
    return _in_chunks(finetuned.embed_images, (pixels,), chunk)


def embed_captions(
    finetuned: FinetunedDualEncoder,
    tokens: TowerCaptions,
    rows: Tensor,
    device: torch.device,
    chunk: int | None = None,
) -> Tensor:
    """The captions with the given rows, ``(M,)`` int64, each by its tower -> (M, E) float32, unit length."""
    places, vectors = [], []
    for part in tokens.of(rows.tolist()):
        read = part.inputs

        def embed(*tensors: Tensor, tower: str = part.tower, names: tuple[str, ...] = tuple(read)) -> Tensor:
            return finetuned.embed_texts(tower, **dict(zip(names, tensors, strict=True)))

        vectors.append(_in_chunks(embed, tuple(to_device(tensor, device) for tensor in read.values()), chunk))
        places.append(part.at)
    order = to_device(torch.cat(places).argsort(), device)
    return torch.cat(vectors)[order]


@dataclass(frozen=True)
class FinetunedEmbedder:
    """A fine-tuned dual encoder in evaluation mode, with the tokenizers of its text towers."""

    finetuned: FinetunedDualEncoder
    readers: Mapping[str, TowerReader]
    device: torch.device
    tags: TagTable | None = None

    @property
    def languages(self) -> list[str]:
        return [language for reader in self.readers.values() for language in reader.languages]

    def images(self, store: FeatureStore) -> Embedder[Any]:
        """For rows of a store of pixels."""
        preprocessing = preprocessing_of(store.attributes)

        def vectors(rows: np.ndarray) -> Tensor:
            pixels = to_device(torch.from_numpy(store[PIXELS].gather(rows)), self.device)
            return embed_pixels(self.finetuned, preprocessing.normalise(pixels, torch.float32))

        return Embedder(self.finetuned.embedding_dim, vectors)

    def captions(self, table: pd.DataFrame) -> Embedder[Any]:
        """For rows of ``captions.parquet``.

        Args:
            table: ``caption_row``, ``language`` and ``text``, and ``raw`` where texts were cleaned.
        """
        tokens = TowerCaptions(table, self.readers, self.tags)

        def vectors(rows: np.ndarray) -> Tensor:
            return embed_captions(self.finetuned, tokens, torch.from_numpy(rows), self.device)

        return Embedder(self.finetuned.embedding_dim, vectors)

    def embed_split(
        self, store: FeatureStore, data: Manifest, split: str, pairs: Path | None, reporter: Reporter
    ) -> Embeddings:
        """The captions of a split in the languages of the towers, and their images; see :func:`captions_to_read`."""
        captions = captions_to_read(data, self.languages, pairs, split)
        return embed_split(self.images(store), self.captions(captions), captions, reporter)


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
    finetuned = rebuild(folder, build_finetuned, card, weights)
    readers = {
        name: TowerReader.from_description(values) for name, values in read_tower_readers(folder / READERS).items()
    }
    check_tags(finetuned, tags)
    return FinetunedEmbedder(finetuned.to(device).eval(), readers, device, tags)


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


def check_tags(finetuned: FinetunedDualEncoder, tags: TagTable | None) -> None:
    """A text tower that adds parts of speech needs them."""
    if tags is None and any(
        isinstance(tower, FinetunedTextTower) and tower.tags is not None for tower in finetuned.towers
    ):
        raise UserError("a text tower adds parts of speech", remedy="run the stage tag_words and give tags")


def _in_chunks(embed: Callable[..., Tensor], inputs: tuple[Tensor, ...], chunk: int | None) -> Tensor:
    if chunk is None or not torch.is_grad_enabled():
        return embed(*inputs)
    parts = zip(*(tensor.split(chunk) for tensor in inputs), strict=True)
    return torch.cat([checkpoint(embed, *part, use_reentrant=False) for part in parts])


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
