"""From the configuration of a fine-tuned dual encoder to the untrained model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from torch import nn

from vitcapr.batches.tokenised import TowerReader
from vitcapr.config.finetuned_dual_encoder import FinetunedTextConfig, FinetuneSettings, FinetuningConfig
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.pairs import read_pair_table
from vitcapr.formats.tokens import TAGS, read_tokenizer
from vitcapr.models.finetuned_dual_encoder import FinetunedDualEncoder
from vitcapr.retrieval.finetuned_towers import build_finetuned, image_part, scratch_part, text_part
from vitcapr.store.fill_pixels import PIXELS
from vitcapr.store.reader import FeatureStore


def check_pixels(store: FeatureStore, data: Manifest, where: Path) -> None:
    """Raises:
    UserError: the store has no pixels, or those of another data set.
    """
    if PIXELS not in store or store.image_ids != data.images["image_id"].tolist():
        raise UserError(
            f"these are not the pixels of the data set {data.dataset}",
            where=where,
            remedy="decode the pictures of this data set",
        )


def captions_to_read(data: Manifest, languages: Sequence[str], pairs: Path | None, split: str | None) -> pd.DataFrame:
    """The captions of a split, or of all, in some languages; with their texts before cleaning where ``pairs`` is given.

    Raises:
        UserError: ``pairs`` belongs to another manifest.
    """
    captions = data.captions_of(split)
    captions = captions[captions["language"].isin(languages)].reset_index(drop=True)
    if pairs is None:
        return captions
    raw = read_pair_table(pairs, data.captions["caption_id"].tolist())["raw"].to_numpy()
    return captions.assign(raw=raw[captions["caption_row"]])


def assembled(
    chosen: FinetuneSettings, store: FeatureStore, source: str, tokenizers: dict[str, Path]
) -> tuple[FinetunedDualEncoder, dict[str, Any], dict[str, TowerReader], dict[str, str]]:
    """The untrained fine-tuned dual encoder, what rebuilds it, how its text towers read, and what it starts from."""
    config = chosen.finetuned
    height, width = store[PIXELS].shape[1:3]
    encoder, described, digest = image_part(source, chosen.revision, (height, width), config.image.pool)
    parts: dict[str, nn.Module] = {"image": encoder}
    described["top_layers"] = config.image.top_layers
    texts, readers, digests = {}, {}, {"image": digest}
    for name, text in config.text.items():
        parts[f"text.{name}"], texts[name], readers[name], digests[name] = _text(text, tokenizers)
        texts[name] |= {
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
        "image": described,
        "texts": texts,
    }
    return build_finetuned(architecture, parts), architecture, readers, digests


def _text(text: FinetunedTextConfig, tokenizers: dict[str, Path]) -> tuple[nn.Module, dict[str, Any], TowerReader, str]:
    languages = tuple(text.languages)
    if text.source is not None:
        return text_part(text.source, text.revision, text.pool, languages, text.max_length, text.segments)
    path = tokenizers.get(str(text.tokenizer))
    if path is None or not path.is_file():
        raise UserError(
            f"no tokenizer '{text.tokenizer}'", where=path or "--tokenizer", remedy="run the stage train_tokenizer"
        )
    model, described, reader = scratch_part(
        read_tokenizer(path),
        text.pool,
        languages,
        text.max_length,
        text.segments,
        layers=text.layers,
        hidden_dim=text.hidden_dim,
        heads=text.heads,
        dropout=text.dropout,
    )
    return model, described, reader, sha256_file(path)


def prepare(model: FinetunedDualEncoder, training: FinetuningConfig) -> None:
    """Choose how the towers are computed, which changes nothing of what they compute."""
    for tower in model.towers:
        if training.checkpoint_layers:
            encoder: Any = tower.encoder
            encoder.gradient_checkpointing_enable({"use_reentrant": False})
        if training.compile:
            tower.compile()
