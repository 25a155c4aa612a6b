"""Embeds rows of feature stores, of a backbone and its augmented views, and sentences with a trained retriever."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from vitcapr.batches.sources import FeatureSource, GatheredArray, check_widths, read_rows
from vitcapr.encoders.devices import to_device
from vitcapr.errors import UserError
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import layer_of, read_model, rebuild
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.dual_encoder_model import DualEncoders, TextBatch, build_dual_encoder
from vitcapr.progress import Reporter
from vitcapr.store.reader import FeatureStore, open_features
from vitcapr.text.normalise import words_of

_BLOCK = 256
"""Images, or captions, that are embedded at a time."""
ReadTexts = Callable[[Any], Tensor]
"""From sentences, or rows of captions, to what a text tower reads."""


@dataclass(frozen=True)
class Embedder:
    """Turns sentences, or rows of a store, into the space of a model; only one block of them is held in memory.

    Attributes:
        embedding_dim: E.
        vectors: from n items to (n, E), of unit length.
    """

    embedding_dim: int
    vectors: Callable[[Any], Tensor]

    @torch.inference_mode()
    def embed(self, items: Any, advance: Callable[[int], object] = lambda _: None) -> np.ndarray:
        """(n, E) float32, unit length, in the order given.

        Args:
            items: sentences, or rows (n,) in any order.
            advance: called with the number of items of each block.
        """
        blocks = [torch.empty(0, self.embedding_dim)]
        for first in range(0, len(items), _BLOCK):
            blocks.append(self.vectors(items[first : first + _BLOCK]).cpu())
            advance(len(blocks[-1]))
        return torch.cat(blocks).numpy()


def embed_split(images: Embedder, captions: Embedder, table: pd.DataFrame, reporter: Reporter) -> Embeddings:
    """Return the captions of a table and their images; an image may have no caption in the languages of the table.

    Args:
        images, captions: the embedders of rows of images and of rows of captions.
        table: the captions, with ``caption_row`` and ``image_row``.

    Raises:
        UserError: there are no captions.
    """
    if table.empty:
        raise UserError("the split has no captions in the language that the model reads")
    rows, caption_row = np.unique(table["image_row"]), table["caption_row"].to_numpy(copy=True)
    with reporter.track("embed", len(rows) + len(table), "images and captions") as tracker:
        return Embeddings(
            images=images.embed(rows, tracker.advance),
            captions=captions.embed(caption_row, tracker.advance),
            image_row=rows.astype(np.int32),
            caption_row=caption_row.astype(np.int32),
            caption_image=np.searchsorted(rows, table["image_row"]).astype(np.int32),
        )


def embed_rows(
    model: DualEncoders,
    augmented_views: Sequence[FeatureSource],
    device: torch.device,
    prepare: Callable[[dict[str, Tensor]], dict[str, Tensor]] = lambda features: features,
) -> Embedder:
    """Return an embedder of rows of a store, or of several views of the images.

    Args:
        prepare: from the arrays of a store, on ``device``, to what the image tower reads.
    """

    def vectors(rows: np.ndarray) -> Tensor:
        read = [read_rows(view, model.image_arrays, rows, device) for view in augmented_views]
        return model.embed_augmented_views(list(map(prepare, read)))

    return Embedder(model.embedding_dim, vectors)


def embed_texts(model: DualEncoders, read: Callable[[Any], TextBatch], device: torch.device) -> Embedder:
    """Return an embedder of sentences or caption rows; ``read`` makes the inputs of the text tower."""
    return Embedder(model.embedding_dim, lambda texts: model.embed_texts(place_texts(read(texts), device)))


def rows_of(array: GatheredArray) -> Callable[[np.ndarray], Tensor]:
    """Return a function that reads rows of an array of text features."""
    return lambda rows: torch.from_numpy(array.gather(rows))


def place_texts(texts: TextBatch, device: torch.device) -> TextBatch:
    """Return the input of a text tower on ``device``, its features as float32."""
    if isinstance(texts, Tensor):
        texts = to_device(texts, device)
        return texts.float() if texts.is_floating_point() else texts
    if isinstance(texts, tuple):
        features, words = texts
        return to_device(features, device).float(), to_device(words, device)
    return texts.to(device)


@dataclass(frozen=True)
class Retriever:
    """A trained retriever.

    Attributes:
        model: in evaluation mode, on ``device``.
        card: what it is and what made it.
        words: the vocabulary it was trained with; None for a head on text features alone.
        text_encoder: where the text encoder lies, in place of what the card says; None believes the card.
    """

    folder: Path
    model: DualEncoders
    card: dict[str, Any]
    words: Vocabulary | None
    device: torch.device
    text_encoder: str | None = None

    @cached_property
    def text_embedder(self) -> Embedder:
        """Embedder of new sentences; a retriever over text features loads its text encoder here."""
        return self._embedder(self._words, self._text_encoder)

    def _embedder(self, words: ReadTexts, open_encoder: Callable[[], ReadTexts]) -> Embedder:
        """Return an embedder of texts as word numbers and features; encoders are opened only if they are read."""
        if self.model.reads == "tokens":
            return embed_texts(self.model, words, self.device)
        features = open_encoder()
        both = self.model.reads == "both"
        read = (lambda texts: (features(texts), words(texts))) if both else features
        return embed_texts(self.model, read, self.device)

    @property
    def augmented_views(self) -> list[str]:
        """The backbones of its augmented views."""
        return list(self.card["settings"]["retriever"].get("augmented_views", []))

    @property
    def layer(self) -> int | None:
        """The hidden layer that it reads; None: the output of the backbone."""
        return layer_of(self.card, "retriever")

    def image_embedder(self, *augmented_views: FeatureStore) -> Embedder:
        """Return the embedder of the images of a store.

        Raises:
            UserError: a store lacks an array, or its features are of another width than those it was trained on.
        """
        for store in augmented_views:
            check_widths(store, self.model.image_arrays, self.card["architecture"]["image"])
        return embed_rows(self.model, augmented_views, self.device)

    def caption_embedder(self, data: Manifest, text_features: Path | None) -> Embedder:
        """Return the embedder of the captions of a data set, by their rows.

        Args:
            text_features: manifest.json of their features, for a retriever that reads features.

        Raises:
            UserError: there are no such features, or they are of other captions, width or encoder than those it was
                trained on.
        """
        captions = data.captions["text"].tolist()

        def stored() -> ReadTexts:
            if text_features is None:
                raise UserError("this retriever reads text features", where=self.folder, remedy="give text_features")
            store = open_features(text_features)
            store.check_rows("caption_id", data)
            store.check_width("text", self.card["architecture"]["text"]["feature_dim"])
            made = self.card["text_encoder"]
            if store.attributes["weights_sha256"] != made["weights_sha256"]:
                what = "the text features are of another text encoder than the retriever was trained on"
                raise UserError(what, where=store.path, remedy=f"give features of {made['source']}")
            return rows_of(store["text"])

        return self._embedder(lambda rows: self._words([captions[row] for row in rows]), stored)

    @property
    def language(self) -> str | None:
        """The language of the captions that it was trained on; None: not stated."""
        return None if self.words is None else self.words.recipe["language"]

    def _words(self, captions: Sequence[str]) -> Tensor:
        """Word numbers by the recipe of the vocabulary; a caption without a known word is ``<start> <end>``."""
        assert self.words is not None
        cleaning = self.words.recipe["normalise"]
        longest = self.card["settings"]["retriever"]["text"]["max_length"]
        numbers = [self.words.encode(words_of(caption, **cleaning))[:longest] for caption in captions]
        return pad_sequence([torch.tensor(caption) for caption in numbers], True, self.words.pad)

    def _text_encoder(self) -> ReadTexts:
        # transformers loads for seconds, and only sentences of one's own need it.
        from vitcapr.encoders.text_encoders import TextRecipe

        made = self.card["text_encoder"]
        if made["weights_sha256"] is None:
            remedy = "search with --image, or train on features of vitcapr stage extract_text"
            raise UserError("its text features were imported: no encoder is known", where=self.folder, remedy=remedy)
        source, revision = self.text_encoder or made["source"], made["revision"] or "main"
        options = {name: made.get(name) for name in ("pool", "dtype", "max_length", "prompt")}
        recipe = TextRecipe(source, self.device, revision=revision, output=made.get("output", "hidden"), **options)
        if recipe.attributes["weights_sha256"] != made["weights_sha256"]:
            what = "this is not the text encoder that the retriever was trained with"
            raise UserError(what, where=source, remedy=f"give {made['source']}, revision {revision}")
        encoder = recipe.load()
        return lambda captions: torch.from_numpy(encoder.encode(captions))


def open_retriever(
    folder: Path, *, vocabulary: Path | None, device: torch.device, text_encoder: str | None = None
) -> Retriever:
    """Return the retriever that ``train_retriever`` wrote to ``folder``.

    Args:
        vocabulary: vocabulary.json that it was trained with; None for a head on text features alone.
        text_encoder: hub id or folder of its text encoder where it is not found by the name on the card.

    Raises:
        UserError: there is none, or it was trained with another vocabulary.
    """
    weights, card = read_model(folder)
    words = None if vocabulary is None else Vocabulary.read(vocabulary)
    known = card["architecture"]["text"].get("vocabulary")
    if words is not None and known not in (None, len(words)):
        raise UserError(
            f"the retriever has {known} words and the vocabulary {len(words)}",
            where=folder,
            remedy="give the vocabulary it was trained with, or train it again",
        )
    model = rebuild(folder, build_dual_encoder, card, weights)
    return Retriever(folder, model.to(device).eval(), card, words, device, text_encoder)


def open_augmented_views(
    data: Manifest, names: Sequence[str], features: Path, further: Sequence[Path] | None, layer: int | None = None
) -> list[FeatureStore]:
    """Return the stores of all views of the images: the backbone's, then those of the augmented views.

    Args:
        names: the retriever's augmented views, in its configuration.
        further: the manifests of their features.
        layer: the hidden layer whose arrays the stores show as ``cls`` and ``patches``; None: the backbone's output.

    Raises:
        UserError: a store holds other images or lacks the layer, the number of views is wrong, or their networks or
            shapes differ.
    """
    paths = [features, *(further or [])]
    if len(paths) != 1 + len(names):
        raise UserError(
            f"the retriever uses {len(names)} augmented views of an image, but {len(paths) - 1} are given",
            remedy=f"give --augmented-views once for each of: {', '.join(names)}"
            if names
            else "leave out --augmented-views",
        )
    stores = [open_features(path).at_layer(layer) for path in paths]
    for store in stores:
        store.check_rows("image_id", data)
    for store, path in zip(stores[1:], paths[1:], strict=True):
        if _kind(store) != _kind(stores[0]):
            what = "this view was extracted with another network or image size than the features"
            raise UserError(what, where=path, remedy="extract all views with one network and one image size")
    return stores


def _kind(store: FeatureStore) -> tuple[object, ...]:
    """Return the properties that all views of an image must share."""
    return store.attributes.get("weights_sha256"), [store[name].shape for name in ("cls", "patches") if name in store]
