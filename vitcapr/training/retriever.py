"""Trains a retriever from its configuration, for all stages and commands that train one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from vitcapr.batches.sources import FeatureSource, feature_dims, with_mean_patch
from vitcapr.batches.texts import FeatureAndWordTexts, FeatureTexts, Texts, WordTexts, draw_pairs
from vitcapr.config.dual_encoder import (
    AnyTextConfig,
    FeaturesAndWordsTextConfig,
    FeaturesTextConfig,
    LstmTextConfig,
    RetrieverConfig,
    TextTowerConfig,
    TextTowerPart,
)
from vitcapr.config.training import DualEncoderTrainingConfig
from vitcapr.encoders.devices import dtype_name
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.models.dual_encoder_model import DualEncoder, DualEncoders, build_dual_encoder
from vitcapr.models.towers import ImageTower
from vitcapr.store.reader import FeatureStore, open_features
from vitcapr.training.outcome import Rates, TrainingJob
from vitcapr.training.retriever_task import RetrieverTask
from vitcapr.training.saved_state import start_embedding

_BLOCK = 4096
"""Rows measured at a time."""


def architecture_of(
    retriever: RetrieverConfig, image_dims: Mapping[str, int], *, text_dim: int | None = None, vocabulary: int = 0
) -> dict[str, Any]:
    """Return the description from which the model is built again.

    See :func:`vitcapr.models.dual_encoder_model.build_dual_encoder`.

    Raw features of one width keep it, whatever ``embedding_dim`` says.

    Args:
        image_dims: the widths of the image features, of :func:`~vitcapr.batches.sources.feature_dims`.
        text_dim: the width of the text features, for a text tower that reads them.
        vocabulary: how many words, for a text tower that reads words.
    """
    text = _described(retriever.text)
    if not isinstance(retriever.text, FeaturesTextConfig):
        text["vocabulary"] = vocabulary
    if retriever.text.reads_features:
        text["feature_dim"] = text_dim
    learns = bool(retriever.training.phases)
    raw = not learns and image_dims == {"feature_dim": text_dim}
    return {
        "members": retriever.members,
        "embedding_dim": text_dim if raw else retriever.embedding_dim,
        "temperature": retriever.temperature,
        "learn_temperature": retriever.learn_temperature and learns,
        **({} if retriever.training.start_bias is None else {"bias": retriever.training.start_bias}),
        "image": {**image_dims, **retriever.image.canonical()},
        "text": text,
    }


def _described(text: TextTowerConfig) -> dict[str, Any]:
    if isinstance(text, TextTowerPart):
        return text.described()
    keys = text.model_dump(exclude={"encoder", "word_vectors", "max_length"})
    is_lstm = {"kind": "words", "bidirectional": text.kind == "bilstm"}
    return keys | is_lstm if isinstance(text, LstmTextConfig) else keys


class RetrieverTexts(NamedTuple):
    """The captions of a data set in the forms that a text tower may read.

    Attributes:
        table: the captions as numbers of ``words``.
        sentences: their text features; None if the text tower reads none.
    """

    table: TokenTable
    words: Vocabulary
    sentences: FeatureStore | None = None


def train_retriever(
    job: TrainingJob,
    retriever: RetrieverConfig,
    data: Manifest,
    stores: Sequence[FeatureStore],
    captions: RetrieverTexts,
    word_vectors: Path | None,
) -> None:
    """Train a retriever on a data set.

    Args:
        job: its card lacks architecture, backbone and text encoder.
        stores: of the backbone, then of the augmented views.
        word_vectors: ``vectors.npy``, from which the word embedding starts.
    """
    table, sentences, train = captions.table, captions.sentences, data.rows("train")
    if retriever.training.pairs is not None:
        table = table.select(draw_pairs(table.image_row, train, retriever.training.pairs, seed=0))
    arrays = retriever.image.arrays if "cls" in stores[0] else retriever.image.needed_arrays
    image_dims = feature_dims(stores[0], arrays) | ({"cls_dim": 0} if arrays == ("patches",) else {})
    text_dim = None if sentences is None else sentences["text"].shape[-1]
    architecture = architecture_of(retriever, image_dims, text_dim=text_dim, vocabulary=len(captions.words))
    text_encoder = None if sentences is None else describe_text_encoder(sentences)
    job = job.describe(backbone=retriever.backbone, text_encoder=text_encoder)
    texts = texts_of(retriever.text, table, sentences)
    trainer = DualEncoderTrainer(job, retriever.training, stores, texts, train, data.rows("validation"))
    trainer.fit_retriever(retriever, architecture, partial(_begin, captions.words, word_vectors))


def sample_rows(rows: np.ndarray, most: int | None) -> np.ndarray:
    """Return at most ``most`` of the rows, in their order, the same at every call; None: all."""
    sample: np.ndarray = np.sort(np.random.default_rng(0).permutation(rows)[:most])
    return sample


@dataclass(frozen=True)
class DualEncoderTrainer:
    """Trains a dual encoder on the images and captions of a data set.

    Attributes:
        augmented_views: stores of the same images.
        texts: all captions to train on and to validate with.
        train, validation: rows of the images of each split.
    """

    job: TrainingJob
    training: DualEncoderTrainingConfig
    augmented_views: Sequence[FeatureSource]
    texts: Texts
    train: np.ndarray
    validation: np.ndarray

    def fit_retriever(
        self,
        retriever: RetrieverConfig,
        architecture: Mapping[str, Any],
        begin: Callable[[DualEncoder], None] = lambda _: None,
    ) -> None:
        """Train the retriever of this architecture on stored features, or every one of its sweep.

        Args:
            begin: changes every untrained dual encoder before its first step.
        """
        views = self.augmented_views
        if retriever.image.pool == "cls_mean":
            views = [with_mean_patch(view) for view in views]

        def build() -> DualEncoders:
            encoder = build_dual_encoder(dict(architecture))
            for member in encoder.members:
                begin(member)
                _measure(member, views, self.texts, self.train)
            return encoder

        dimensions = architecture["embedding_dim"]
        self.job.reporter.line(f"{retriever.image.pool} and {retriever.text.kind}, {dimensions} dimensions")
        validation = sample_rows(self.validation, retriever.training.validation_images)
        job = self.job.describe(architecture=architecture)
        replace(self, job=job, augmented_views=views, validation=validation).fit(build)

    def fit(
        self,
        build: Callable[[], DualEncoders],
        rates_of: Callable[[nn.Module], Rates] | None = None,
        **task: Any,
    ) -> None:
        """Train a dual encoder whose towers are of any kind, and leave its files in the folder of the job.

        Args:
            build: the untrained dual encoder, the same for the same state of torch's generator.
            rates_of: as for :meth:`TrainingJob.train`.
            task: further arguments of :class:`RetrieverTask`.
        """
        job, training = self.job, self.training
        dtype = job.dtype(training.precision)

        def make_task() -> RetrieverTask:
            torch.manual_seed(job.seed)
            encoder = build()
            trained = sum(weight.numel() for weight in encoder.parameters() if weight.requires_grad)
            job.reporter.line(f"{trained:,} weights to train, {dtype_name(dtype)} on {job.device}")
            return RetrieverTask(
                encoder,
                self.augmented_views,
                self.texts,
                train=self.train,
                validation=self.validation,
                phases=training.phases,
                seed=job.seed,
                device=job.device,
                **task,
            )

        sweep = [] if training.sweep is None else training.sweep.learning_rate
        job.train(make_task, training, dtype, sweep=sweep, rates_of=rates_of)


def _begin(words: Vocabulary, word_vectors: Path | None, encoder: DualEncoder) -> None:
    """Give a tower of an extension the words, or the word embedding the vectors of a ``vectors.npy``.

    Raises:
        UserError: the tower has no word embedding.
    """
    begin: Callable[[Sequence[str]], None] | None = getattr(encoder.text, "begin", None)
    if begin is not None:
        begin(words.words)
    if word_vectors is None:
        return
    embedding = getattr(encoder.text, "embedding", None)
    if embedding is None:
        raise UserError("a text tower of kind features has no word embedding", remedy="omit word_vectors")
    start_embedding(embedding, word_vectors, "the retriever's text.word_dim")


def _measure(encoder: DualEncoder, augmented_views: Sequence[FeatureSource], texts: Texts, train: np.ndarray) -> None:
    """Set the means and deviations that standardise both inputs.

    They are those of the training rows that have a caption, and of these captions.
    """
    images = texts.image_row
    trained = np.isin(images, train)
    if isinstance(encoder.image, ImageTower) and encoder.image.standardise is not None:
        encoder.image.standardise.measure(
            torch.from_numpy(view["cls"].gather(rows))
            for rows in _blocks(np.unique(images[trained]))
            for view in augmented_views
        )
    standardise = getattr(encoder.text, "standardise", None)
    if standardise is not None and isinstance(texts, FeatureTexts | FeatureAndWordTexts):
        features = texts.features if isinstance(texts, FeatureAndWordTexts) else texts
        standardise.measure(features.of(captions) for captions in _blocks(np.flatnonzero(trained)))


def _blocks(rows: np.ndarray) -> Iterator[np.ndarray]:
    for first in range(0, len(rows), _BLOCK):
        yield rows[first : first + _BLOCK]


def open_text_features(path: Path | None, data: Manifest, retriever: RetrieverConfig) -> FeatureStore | None:
    """Return the store of text features, if the text tower reads one."""
    kind = retriever.text.kind
    if not retriever.text.reads_features:
        if path is not None:
            raise UserError(f"a text tower of kind {kind} reads no text features", remedy="leave out text_features")
        return None
    if path is None:
        raise UserError(f"a text tower of kind {kind} needs text_features", remedy="run extract_text and give them")
    store = open_features(path)
    store.check_rows("caption_id", data)
    return store


def describe_text_encoder(store: FeatureStore) -> dict[str, Any]:
    """Return the recipe by which a new sentence is embedded as the stored ones were."""
    made = store.attributes
    described = {"source": made.get("backbone", "unknown"), "output": made.get("output", "hidden")}
    described |= {name: made.get(name) for name in ("revision", "weights_sha256", "pool", "max_length", "dtype")}
    return described | {name: made[name] for name in ("prompt",) if name in made}


def texts_of(text: AnyTextConfig, table: TokenTable, sentences: FeatureStore | None) -> Texts:
    """Return the captions of the token table, whichever form the text tower takes."""
    if sentences is None:
        assert not isinstance(text, FeaturesTextConfig)
        return WordTexts(table, text.max_length)
    features = FeatureTexts(sentences["text"], table.caption_row, table.image_row)
    if isinstance(text, FeaturesAndWordsTextConfig):
        return FeatureAndWordTexts(features, WordTexts(table, text.max_length))
    return features
