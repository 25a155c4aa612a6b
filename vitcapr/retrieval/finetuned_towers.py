"""Towers of a fine-tuned dual encoder: from checkpoints, from scratch, or from the card of a trained model."""

from collections.abc import Mapping
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoConfig, AutoModel, BertConfig, BertModel

from vitcapr.batches.tokenised import TowerReader
from vitcapr.encoders.checkpoints import locate, weights_digest
from vitcapr.encoders.image_towers import Backbone
from vitcapr.encoders.text_encoders import (
    TextEncoder,
    load_text_encoder,
    locate_text_encoder,
    text_encoder_digest,
)
from vitcapr.errors import UserError
from vitcapr.models.finetuned_dual_encoder import FinetunedDualEncoder, FinetunedImageTower, FinetunedTextTower, Pool
from vitcapr.text.wordpiece import PAD

_LABELS = ("id2label", "label2id")


def image_part(source: str, revision: str, size: tuple[int, int], pool: Pool) -> tuple[nn.Module, dict[str, Any], str]:
    """A ViT to be trained further, what describes it in a card, and the digest of its checkpoint.

    Args:
        size: height and width of the pictures.

    Raises:
        UserError: it is nowhere, or not a ViT with a CLS token.
    """
    folder = locate(source, revision).folder
    backbone = Backbone(folder, size, torch.float32)
    model = _without_pooler(backbone.model)
    described = {
        "config": _config_of(model),
        "options": dict(backbone.options),
        "pool": pool,
        "prefix": backbone.prefix,
        "width": backbone.dim,
    }
    return model, described, weights_digest(folder)


def text_part(
    source: str, revision: str, pool: Pool, languages: tuple[str, ...], max_length: int, segments: bool
) -> tuple[nn.Module, dict[str, Any], TowerReader, str]:
    """A model of the BERT family to be trained further, its description, its reader and the digest of its checkpoint.

    Args:
        segments: whether it reads token types.

    Raises:
        UserError: it is nowhere, has no fast tokenizer, reads fewer tokens, or has one token type only.
    """
    encoder = load_text_encoder(
        source, revision=revision, pool=pool, dtype="float32", device=torch.device("cpu"), max_length=max_length
    )
    assert isinstance(encoder, TextEncoder)
    backend = getattr(encoder.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise UserError(f"'{source}' has no fast tokenizer", remedy="save its tokenizer as tokenizer.json")
    model = _without_pooler(encoder.model)
    if segments and getattr(encoder.model.config, "type_vocab_size", 1) < 2:
        raise UserError(f"'{source}' has no token types", remedy="set segments: false, or use a BERT")
    reader = TowerReader(
        Tokenizer.from_str(backend.to_str()), languages, encoder.tokenizer.pad_token_id, max_length, segments
    )
    described = {"config": _config_of(model), "pool": pool, "width": encoder.dim}
    return model, described, reader, text_encoder_digest(locate_text_encoder(source, revision).folder)


def scratch_part(
    tokenizer: Tokenizer,
    pool: Pool,
    languages: tuple[str, ...],
    max_length: int,
    segments: bool,
    *,
    layers: int,
    hidden_dim: int,
    heads: int,
    dropout: float,
) -> tuple[nn.Module, dict[str, Any], TowerReader]:
    """A small BERT with random weights over a tokenizer trained here."""
    pad = tokenizer.token_to_id(PAD)
    if pad is None:
        raise UserError(f"the tokenizer has no {PAD}", remedy="run the stage train_tokenizer")
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=hidden_dim,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden_dim,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        max_position_embeddings=max_length,
        pad_token_id=pad,
    )
    model = BertModel(config, add_pooling_layer=False)
    described = {"config": _config_of(model), "pool": pool, "width": hidden_dim}
    return model, described, TowerReader(tokenizer, languages, pad, max_length, segments)


def build_finetuned(
    architecture: Mapping[str, Any], parts: Mapping[str, nn.Module] | None = None
) -> FinetunedDualEncoder:
    """The dual encoder that a card's ``architecture`` describes.

    Args:
        parts: the encoders, ``image`` and ``text.<tower>``; None makes them with random weights.
    """
    image, width = architecture["image"], architecture["embedding_dim"]
    parts = parts or {
        "image": _from_config(image["config"]),
        **{f"text.{name}": _from_config(text["config"]) for name, text in architecture["texts"].items()},
    }
    towers = {
        name: FinetunedTextTower(
            parts[f"text.{name}"],
            text["width"],
            width,
            text["pool"],
            text["top_layers"],
            pretrained=text["pretrained"],
            tags=text["tags"],
            segments=text["segments"],
            title_weight=text["title_weight"],
        )
        for name, text in architecture["texts"].items()
    }
    picture = FinetunedImageTower(
        parts["image"],
        image["width"],
        width,
        image["pool"],
        image["top_layers"],
        prefix=image["prefix"],
        options=image["options"],
    )
    return FinetunedDualEncoder(picture, towers, architecture["temperature"], architecture["learn_temperature"])


def _without_pooler(model: Any) -> nn.Module:
    """Its weights would never be trained: the vector is taken before it."""
    if getattr(model, "pooler", None) is not None:
        model.pooler = None
    network: nn.Module = model.requires_grad_(True)
    return network


def _config_of(model: Any) -> dict[str, Any]:
    values: dict[str, Any] = model.config.to_dict()
    return {key: value for key, value in values.items() if key not in _LABELS and not key.startswith("_")}


def _from_config(values: Mapping[str, Any]) -> nn.Module:
    transformers.utils.logging.set_verbosity_error()
    values = dict(values)
    model = AutoModel.from_config(AutoConfig.for_model(values.pop("model_type"), **values))
    return _without_pooler(getattr(model, "vision_model", getattr(model, "text_model", model)))
