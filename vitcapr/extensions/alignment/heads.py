"""Trained projection heads: the retrievers of ``experiments/projection-flickr8k.yaml``, on features in memory.

``linear``, ``mlp`` and ``residual`` have that experiment's settings. ``fusemix`` is Vouitsis et al. 2024,
Data-Efficient Multimodal Fusion on a Single GPU: deeper residual perceptrons, trained on pairs that are mixed in both
spaces by the same share, ``(x, y) = s (x_k, y_k) + (1 - s) (x_l, y_l)`` with s from Beta(1, 1)
(:func:`vitcapr.training.retriever_task.mix`).

``sail`` is Zhang et al. 2025, Assessing and Learning Alignment of Unimodal Vision and Language Models: gated heads
(:class:`vitcapr.models.projections.GatedHead`), the sigmoid loss (:func:`vitcapr.training.contrastive.sigmoid`) with a
temperature of 1/20 and a bias of -10 at the start, and batches in which all captions of an image are positives. They
train 23 million pairs with Lion in batches of 32,768. Here the optimiser is AdamW, the heads are narrower
and have dropout, and a batch has 256 images with all their captions: with 5,000 pairs, batches of 1,024 images make
too few steps, and the validation pairs prefer these settings.

``structure`` is Gröger et al. 2025, With Limited Data for Multimodal Alignment, Let the STRUCTURE Guide You: the linear
head with their loss (:func:`vitcapr.training.contrastive.structure_loss`) added to InfoNCE. Its weight is 100: with 10,
the default of their code, the validation pairs show no difference to the linear head.

``cca_head`` is ours: residual perceptrons whose linear layers start as the solution of regularised CCA
(:func:`vitcapr.extensions.alignment.closed_forms.canonical`) and whose perceptrons start at 0, trained by InfoNCE with
mixup. ``cca_heads`` is an ensemble of four of them.

``residuals`` is an ensemble of four wider residual heads with more dropout, for many pairs and inputs with words.

The validation pairs choose the epoch, and of ``mlp`` the learning rate.
"""

import io
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.batches.texts import FeatureTexts
from vitcapr.config.dual_encoder import RetrieverConfig
from vitcapr.config.reading import parse
from vitcapr.extensions.alignment.closed_forms import Alignment, Fit, Fitted, Pairs, canonical
from vitcapr.formats.model import read_model
from vitcapr.models.dual_encoder_model import DualEncoder, build_dual_encoder
from vitcapr.models.projections import ResidualHead
from vitcapr.progress import Reporter
from vitcapr.retrieval.embedder import embed_rows, embed_texts, rows_of
from vitcapr.training.outcome import TrainingJob
from vitcapr.training.retriever import DualEncoderTrainer, architecture_of

_CPU = torch.device("cpu")
_CCA_RIDGE = 1.0
_STEPS = 75
"""Fewest steps of a training: with 5,000 pairs, the linear head's five epochs."""


Recipe = Mapping[str, Any]
"""The settings of a retriever."""
HEADS: Mapping[str, Recipe] = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))["heads"]
FROM_CCA = ("cca_head", "cca_heads")
"""The heads that start as the solution of CCA."""


def fit_head(name: str) -> Fit:
    """Return the training of a head."""
    return partial(_fit, HEADS[name], name in FROM_CCA)


def _fit(recipe: Recipe, from_cca: bool, train: Pairs, validation: Pairs, seed: int) -> Iterator[Fitted]:
    images = np.concatenate([train.images, validation.images])
    texts = np.concatenate([train.texts, validation.texts])
    image_row = np.concatenate([train.caption_image, validation.caption_image + len(train.images)])
    retriever = configured(recipe, len(train.images))
    architecture = architecture_of(retriever, {"feature_dim": images.shape[1]}, text_dim=texts.shape[1])
    if from_cca:
        architecture["embedding_dim"] = min(images.shape[1], texts.shape[1])
    with tempfile.TemporaryDirectory(prefix="vitcapr-head-") as folder:
        description = {"settings": {}, "inputs": {}, "code": ""}
        job = TrainingJob(Path(folder), description, seed, _CPU, Reporter(stream=io.StringIO()))
        rows = np.arange(len(images))
        trainer = DualEncoderTrainer(
            job,
            retriever.training,
            [MemoryFeatures(cls=MemoryArray(images))],
            FeatureTexts(MemoryArray(texts), np.arange(len(texts)), image_row),
            train=rows[: len(train.images)],
            validation=rows[len(train.images) :],
        )
        trainer.fit_retriever(retriever, architecture, partial(start_from_cca, train) if from_cca else lambda _: None)
        weights, card = read_model(Path(folder))
    model = build_dual_encoder(card["architecture"])
    model.load_state_dict(weights)
    model.eval()
    alignment = Alignment(
        lambda rows: embed_rows(model, [MemoryFeatures(cls=MemoryArray(rows))], _CPU).embed(np.arange(len(rows))),
        lambda rows: embed_texts(model, rows_of(MemoryArray(rows)), _CPU).embed(np.arange(len(rows))),
    )
    yield Fitted({"epoch": card["best_epoch"]}, alignment)


def start_from_cca(train: Pairs, encoder: DualEncoder) -> None:
    """Set the linear layers to the canonical directions times the correlations, and the perceptrons to 0.

    The heads standardise and normalise their input. Standardising is undone in the weights; normalising a row changes
    its length, which the cosine does not see, and takes out the mean of its dimensions.
    """
    cca = canonical(train.image_of_text, train.texts, _CCA_RIDGE)
    sides = (
        (encoder.image.head, cca.image_directions, train.images),
        (encoder.text.head, cca.text_directions, train.texts),
    )
    with torch.no_grad():
        for head, directions, rows in sides:
            assert isinstance(head, ResidualHead)
            weight = rows.std(0, dtype=np.float64)[:, None] * directions * cca.correlations
            head.project.weight.copy_(torch.from_numpy(weight.T))
            for parameter in (head.project.bias, head.narrow.weight, head.narrow.bias):
                parameter.zero_()


def configured(recipe: Recipe, images: int) -> RetrieverConfig:
    """Return the retriever of a recipe for so many training images.

    Few images make small batches and more epochs, so that a training has at least 75 steps.
    """
    training: Recipe = recipe["training"]
    phase = training["phases"][0]
    batch = min(phase["batch_images"], max(32, images // 4))
    epochs = max(phase["epochs"], -(-_STEPS // -(-images // batch)))
    phases = [{**phase, "batch_images": batch, "epochs": epochs}]
    fixed = {"phases": phases, "select_by": "rsum", "precision": "float32"}
    values = {"backbone": "images", **recipe, "training": {**training, **fixed}}
    return parse(RetrieverConfig, values, "the recipe")
