"""Embeds rows of a feature store and sentences with a trained retriever."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from vitcapr.batches.sources import FeatureSource, GatheredArray
from vitcapr.errors import UserError
from vitcapr.formats.model import layer_of, read_model, rebuild
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.dual_encoder import DualEncoders, TextBatch, build_dual_encoder
from vitcapr.store.reader import FeatureStore
from vitcapr.text.normalise import words_of

_BLOCK = 256
"""Images or captions embedded at a time."""

Items = TypeVar("Items", Sequence[str], np.ndarray)

Prepare = Callable[[Sequence[str]], TextBatch]


class TextEmbedder:
    """Turns sentences into the retriever's space.

    Args:
        prepare: from sentences to what the retriever's text tower takes.
    """

    def __init__(self, model: DualEncoders, prepare: Prepare, device: torch.device) -> None:
        self._model, self._prepare, self._device = model, prepare, device

    @torch.inference_mode()
    def embed(self, captions: Sequence[str]) -> np.ndarray:
        """(n, E) float32, unit length, in the order given."""
        embed, device = self._model.embed_texts, self._device
        return _stacked((embed(_placed(self._prepare(block), device)) for block in _blocks(captions)), self._model)


class ImageEmbedder:
    """Turns rows of a feature store, or of several views of the images, into the retriever's space.

    Nothing but a block of rows is held in memory.
    """

    def __init__(self, model: DualEncoders, augmented_views: Sequence[FeatureSource], device: torch.device) -> None:
        self._model, self._augmented_views, self._device = model, augmented_views, device

    @torch.inference_mode()
    def embed(self, rows: np.ndarray) -> np.ndarray:
        """(n, E) float32, unit length. rows: (n,) integers, in any order."""
        return _stacked((self._model.embed_augmented_views(self._seen(block)) for block in _blocks(rows)), self._model)

    def _seen(self, rows: np.ndarray) -> list[dict[str, Tensor]]:
        names, device = self._model.image_arrays, self._device
        return [{name: _read(view[name], rows, device) for name in names} for view in self._augmented_views]


class TextFeatureEmbedder:
    """Turns rows of a store of text features, as the retriever was trained on, into its space.

    Args:
        words: the word numbers of such rows, (n, T), for a retriever that reads them too.
    """

    def __init__(
        self,
        model: DualEncoders,
        array: GatheredArray,
        device: torch.device,
        words: Callable[[np.ndarray], Tensor] | None = None,
    ) -> None:
        self._model, self._array, self._device, self._words = model, array, device, words

    @torch.inference_mode()
    def embed(self, rows: np.ndarray) -> np.ndarray:
        """(n, E) float32, unit length. rows: (n,) integers, in any order."""
        return _stacked((self._model.embed_texts(self._batch(block)) for block in _blocks(rows)), self._model)

    def _batch(self, rows: np.ndarray) -> TextBatch:
        features = _read(self._array, rows, self._device).float()
        return features if self._words is None else (features, self._words(rows).to(self._device))


@dataclass(frozen=True)
class Retriever:
    """A trained retriever.

    Attributes:
        model: in evaluation mode, on ``device``.
        card: what it is and what made it.
        words: the vocabulary it was trained with.
        text_encoder: where the text encoder lies, in place of what the card says; None believes the card.
    """

    folder: Path
    model: DualEncoders
    card: dict[str, Any]
    words: Vocabulary
    device: torch.device
    text_encoder: str | None = None

    @cached_property
    def text_embedder(self) -> TextEmbedder:
        """For new sentences; a retriever over text features loads its text encoder here.

        Raises:
            UserError: the text encoder is not found, or is not the one whose features it was trained on.
        """
        if self.model.reads == "tokens":
            return TextEmbedder(self.model, self._words, self.device)
        features = self._features()
        if self.model.reads == "features":
            return TextEmbedder(self.model, features, self.device)
        return TextEmbedder(self.model, lambda captions: (features(captions), self._words(captions)), self.device)

    @property
    def augmented_views(self) -> list[str]:
        """The backbones of its augmented views."""
        return list(self.card["settings"]["retriever"].get("augmented_views", []))

    @property
    def layer(self) -> int | None:
        """The hidden layer that it reads; None: the output of the backbone."""
        return layer_of(self.card, "retriever")

    def image_embedder(self, *augmented_views: FeatureStore) -> ImageEmbedder:
        """Raises:
        UserError: a store lacks an array, or its features are of another width than those it was trained on.
        """
        width = self.card["architecture"]["image"]["feature_dim"]
        for store in augmented_views:
            for name in self.model.image_arrays:
                self._check(store, name, width)
        return ImageEmbedder(self.model, augmented_views, self.device)

    def text_feature_embedder(self, store: FeatureStore, captions: Sequence[str]) -> TextFeatureEmbedder:
        """For captions whose features are stored; for a retriever that reads features.

        Args:
            captions: the texts of the store's rows, from which a retriever that reads words too takes them.

        Raises:
            UserError: the store has no text, of another width than that it was trained on, or of another encoder.
        """
        self._check(store, "text", self.card["architecture"]["text"]["feature_dim"])
        made, wanted = store.attributes["weights_sha256"], self.card["text_encoder"]["weights_sha256"]
        if made != wanted:
            raise UserError(
                "the text features are of another text encoder than the retriever was trained on",
                where=store.path,
                remedy=f"give features of {self.card['text_encoder']['source']}",
            )

        def words(rows: np.ndarray) -> Tensor:
            return self._words([captions[row] for row in rows])

        return TextFeatureEmbedder(
            self.model, store["text"], self.device, words if self.model.reads == "both" else None
        )

    def _check(self, store: FeatureStore, name: str, width: int) -> None:
        if name not in store:
            raise UserError(f"the feature store has no '{name}'", where=store.path, remedy=f"it has {', '.join(store)}")
        if store[name].shape[-1] != width:
            raise UserError(
                f"the retriever reads features of width {width}, these are {store[name].shape[-1]} wide",
                where=store.path,
                remedy="give the features it was trained on",
            )

    def _words(self, captions: Sequence[str]) -> Tensor:
        """Word numbers by the recipe of the vocabulary; a caption without a known word is ``<start> <end>``."""
        cleaning = self.words.recipe["normalise"]
        longest = self.card["settings"]["retriever"]["text"]["max_length"]
        numbers = [self.words.encode(words_of(caption, **cleaning))[:longest] for caption in captions]
        padded = torch.full((len(numbers), max(map(len, numbers))), self.words.pad)
        for row, caption in zip(padded, numbers, strict=True):
            row[: len(caption)] = torch.tensor(caption)
        return padded

    def _features(self) -> Callable[[Sequence[str]], Tensor]:
        # transformers loads for seconds, and only sentences of one's own need it.
        from vitcapr.encoders.text_encoders import load_text_encoder, locate_text_encoder, text_encoder_digest

        made = self.card["text_encoder"]
        source, revision = self.text_encoder or made["source"], made["revision"] or "main"
        output = made.get("output", "hidden")
        if text_encoder_digest(locate_text_encoder(source, revision, output).folder) != made["weights_sha256"]:
            raise UserError(
                "this is not the text encoder that the retriever was trained with",
                where=source,
                remedy=f"give {made['source']}, revision {revision}",
            )
        encoder = load_text_encoder(
            source,
            revision=revision,
            output=output,
            pool=made["pool"],
            dtype=made["dtype"],
            device=self.device,
            max_length=made["max_length"],
        )
        return lambda captions: torch.from_numpy(encoder.encode(captions))


def open_retriever(
    folder: Path, *, vocabulary: Path, device: torch.device, text_encoder: str | None = None
) -> Retriever:
    """The retriever that ``train_retriever`` wrote to ``folder``.

    Args:
        vocabulary: vocabulary.json that it was trained with.
        text_encoder: hub id or folder of its text encoder where it is not found by the name on the card.

    Raises:
        UserError: there is none, or it was trained with another vocabulary.
    """
    weights, card = read_model(folder)
    words = Vocabulary.read(vocabulary)
    known = card["architecture"]["text"].get("vocabulary", len(words))
    if known != len(words):
        raise UserError(
            f"the retriever has {known} words and the vocabulary {len(words)}",
            where=folder,
            remedy="give the vocabulary it was trained with, or train it again",
        )
    model = rebuild(folder, build_dual_encoder, card, weights)
    return Retriever(folder, model.to(device).eval(), card, words, device, text_encoder)


def _read(array: GatheredArray, rows: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(array.gather(rows)).to(device)


def _placed(texts: TextBatch, device: torch.device) -> TextBatch:
    if isinstance(texts, tuple):
        features, words = texts
        return features.to(device), words.to(device)
    return texts.to(device)


def _blocks(items: Items) -> Iterator[Items]:
    for first in range(0, len(items), _BLOCK):
        yield items[first : first + _BLOCK]


def _stacked(blocks: Iterable[Tensor], model: DualEncoders) -> np.ndarray:
    none = torch.empty(0, model.embedding_dim)
    stacked: np.ndarray = torch.cat([none, *(block.cpu() for block in blocks)]).numpy()
    return stacked
