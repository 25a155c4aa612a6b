"""Fine-tuned dual encoders: built from a configuration or from a card, and embeddings by one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoConfig, AutoModel, BertConfig, BertModel

from vitcapr.encoders.checkpoints import locate, weights_digest
from vitcapr.encoders.image_recipe import preprocessing_of
from vitcapr.encoders.image_towers import Backbone
from vitcapr.encoders.loading import quiet_loading
from vitcapr.encoders.text_encoders import TextEncoder, TextRecipe
from vitcapr.errors import UserError
from vitcapr.extensions.finetuning.augment import PixelInput
from vitcapr.extensions.finetuning.config import FinetunedTextConfig, FinetuneSettings
from vitcapr.extensions.finetuning.finetuned_towers import (
    FinetunedImageTower,
    FinetunedTextTower,
    LanguageTowers,
    finetuned_towers,
)
from vitcapr.extensions.finetuning.text_files import READERS, TAGS, TagTable, read_tokenizer, read_tower_readers
from vitcapr.extensions.finetuning.tokenised import TowerCaptions, TowerReader
from vitcapr.extensions.finetuning.wordpiece import PAD
from vitcapr.files import sha256_file
from vitcapr.formats.embeddings import Embeddings
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.model import read_model, rebuild
from vitcapr.formats.pair_files import read_pair_table
from vitcapr.models.dual_encoder_model import DualEncoder
from vitcapr.progress import Reporter
from vitcapr.retrieval.embedder import embed_rows, embed_split, embed_texts
from vitcapr.store.layout import PIXELS
from vitcapr.store.reader import FeatureStore, open_features

_LABELS = ("id2label", "label2id")


class Untrained(NamedTuple):
    """A fine-tuned dual encoder before its training.

    Attributes:
        architecture: rebuilds the model (:func:`build_finetuned`).
        readers: the tokenizer of each text tower.
        digests: of the checkpoint of the image tower, and of the checkpoint or tokenizer of each text tower.
    """

    model: DualEncoder
    architecture: dict[str, Any]
    readers: dict[str, TowerReader]
    digests: dict[str, str]


def untrained_finetuned(
    settings: FinetuneSettings, store: FeatureStore, source: str, tokenizers: Mapping[str, Path]
) -> Untrained:
    """Return the untrained dual encoder of a configuration, on pixels of ``store``.

    Args:
        source: checkpoint of the image tower.
        tokenizers: the trained tokenizers by name, for towers from scratch.

    Raises:
        UserError: a checkpoint or tokenizer is missing or does not fit, or the widths of the towers differ without
            projections.
    """
    config = settings.finetuned
    height, width = store[PIXELS].shape[1:3]
    folder = locate(source, settings.revision).folder
    backbone = Backbone(folder, (height, width), torch.float32)
    backbone.require_cls()
    image = _without_pooler(backbone.model)
    described: dict[str, Any] = {
        "config": _config_of(image),
        "options": dict(backbone.options),
        "pool": config.image.pool,
        "prefix": backbone.prefix,
        "width": backbone.dim,
        "top_layers": config.image.top_layers,
    }
    parts, texts, readers, digests = {"image": image}, {}, {}, {"image": weights_digest(folder)}
    for name, text in config.text.items():
        model, readers[name], digests[name] = _text_part(text, tokenizers)
        parts[f"text.{name}"] = model
        texts[name] = {
            "config": _config_of(model),
            "pool": text.pool,
            "width": model.config.hidden_size,
            "top_layers": text.top_layers,
            "tags": len(TAGS) + 1 if text.tags else 0,
            "segments": text.segments,
            "title_weight": text.title_weight,
            "pretrained": text.source is not None,
        }
    widths = {part["width"] for part in [described, *texts.values()]}
    if config.embedding_dim is None and len(widths) > 1:
        raise UserError(
            f"the towers give vectors of different widths: {', '.join(map(str, sorted(widths)))}",
            remedy="set the fine-tuned dual encoder's embedding_dim, so that each is projected",
        )
    architecture = {
        "embedding_dim": config.embedding_dim,
        "temperature": config.temperature,
        "learn_temperature": config.learn_temperature,
        **({} if config.training.start_bias is None else {"bias": config.training.start_bias}),
        "image": described,
        "texts": texts,
    }
    return Untrained(build_finetuned(architecture, parts), architecture, readers, digests)


def _text_part(text: FinetunedTextConfig, tokenizers: Mapping[str, Path]) -> tuple[Any, TowerReader, str]:
    """Return a model of the BERT family, its tokenizer, and the digest of what it starts from."""
    if text.source is None:
        return _from_scratch(text, tokenizers.get(str(text.tokenizer)))
    options: dict[str, Any] = {"revision": text.revision, "pool": text.pool, "max_length": text.max_length}
    recipe = TextRecipe(text.source, torch.device("cpu"), output="hidden", dtype="float32", **options)
    encoder = recipe.load()
    assert isinstance(encoder, TextEncoder)
    backend = getattr(encoder.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise UserError(f"'{text.source}' has no fast tokenizer", remedy="save its tokenizer as tokenizer.json")
    if text.segments and getattr(encoder.model.config, "type_vocab_size", 1) < 2:
        raise UserError(f"'{text.source}' has no token types", remedy="set segments: false, or use a BERT")
    tokenizer, pad = Tokenizer.from_str(backend.to_str()), encoder.tokenizer.pad_token_id
    reader = TowerReader(tokenizer, tuple(text.languages), pad, text.max_length, text.segments)
    return _without_pooler(encoder.model), reader, recipe.attributes["weights_sha256"]


def _from_scratch(text: FinetunedTextConfig, path: Path | None) -> tuple[Any, TowerReader, str]:
    """Return a small BERT with random weights over a tokenizer trained here."""
    if path is None or not path.is_file():
        raise UserError(
            f"no tokenizer '{text.tokenizer}'", where=path or "tokenizers", remedy="run the stage train_tokenizer"
        )
    tokenizer = read_tokenizer(path)
    pad = tokenizer.token_to_id(PAD)
    if pad is None:
        raise UserError(f"the tokenizer has no {PAD}", remedy="run the stage train_tokenizer")
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=text.hidden_dim,
        num_hidden_layers=text.layers,
        num_attention_heads=text.heads,
        intermediate_size=4 * text.hidden_dim,
        hidden_dropout_prob=text.dropout,
        attention_probs_dropout_prob=text.dropout,
        max_position_embeddings=text.max_length,
        pad_token_id=pad,
    )
    reader = TowerReader(tokenizer, tuple(text.languages), pad, text.max_length, text.segments)
    return BertModel(config, add_pooling_layer=False), reader, sha256_file(path)


def build_finetuned(architecture: Mapping[str, Any], parts: Mapping[str, nn.Module] | None = None) -> DualEncoder:
    """Return the dual encoder that a card's ``architecture`` describes.

    Args:
        parts: the encoders, ``image`` and ``text.<tower>``; None makes them with random weights.
    """

    def arguments(part: str, described: Mapping[str, Any]) -> dict[str, Any]:
        encoder = _from_config(described["config"]) if parts is None else parts[part]
        further = {key: value for key, value in described.items() if key != "config"}
        return {"encoder": encoder, "embedding_dim": architecture["embedding_dim"], **further}

    towers = {
        name: FinetunedTextTower(**arguments(f"text.{name}", text)) for name, text in architecture["texts"].items()
    }
    picture = FinetunedImageTower(**arguments("image", architecture["image"]))
    return DualEncoder(
        picture.embedding_dim,
        picture,
        LanguageTowers(towers),
        architecture["temperature"],
        architecture["learn_temperature"],
        architecture.get("bias"),
    )


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
    values = dict(values)
    with quiet_loading():
        model = AutoModel.from_config(AutoConfig.for_model(values.pop("model_type"), **values))
    return _without_pooler(getattr(model, "vision_model", getattr(model, "text_model", model)))


def embed_split_by_towers(
    model: DualEncoder,
    readers: Mapping[str, TowerReader],
    store: FeatureStore,
    captions: pd.DataFrame,
    tags: TagTable | None,
    device: torch.device,
    reporter: Reporter,
) -> Embeddings:
    """Embed the captions of :func:`captions_to_read` and their images by a fine-tuned dual encoder.

    The encoder is in evaluation mode.

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
    """Return the fine-tuned dual encoder in ``folder`` and the tokenizers of its text towers.

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
    """Check that a text tower that adds parts of speech gets them."""
    if tags is None and any(getattr(tower, "tags", None) is not None for tower in finetuned_towers(model)):
        raise UserError("a text tower adds parts of speech", remedy="run the stage tag_words and give tags")


def open_pixels(path: Path, data: Manifest) -> FeatureStore:
    """Return the store of the pixels of this data set, by its sealed manifest."""
    store = open_features(path)
    store.check_rows("image_id", data)
    store.check_width(PIXELS, 3)
    return store


def captions_to_read(data: Manifest, languages: Sequence[str], pairs: Path | None, split: str | None) -> pd.DataFrame:
    """Return the captions of a split, or of all, in some languages.

    With ``pairs``, their texts before cleaning are included.
    """
    captions = data.captions_of(split)
    captions = captions[captions["language"].isin(languages)].reset_index(drop=True)
    if pairs is None:
        return captions
    raw = read_pair_table(pairs, data.captions["caption_id"].tolist())["raw"].to_numpy()
    return captions.assign(raw=raw[captions["caption_row"]])
