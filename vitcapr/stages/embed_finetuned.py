"""Embed a split with a fine-tuned dual encoder, or with the same model before fine-tuning."""

from typing import Any, Self

from vitcapr.config.base import StageSettings
from vitcapr.config.finetuned_dual_encoder import EXECUTION_ONLY, FinetuneSettings
from vitcapr.config.retriever import EmbedConfig
from vitcapr.formats.kinds import (
    BackboneFolder,
    DualEncoderFolder,
    EmbeddingsFile,
    ManifestFile,
    PairsFile,
    PixelsFile,
    TagsFile,
    TokenizerFile,
)
from vitcapr.pipeline.stage import In, Out, Source, Split, stage
from vitcapr.progress import Reporter


class EmbedFinetunedSettings(StageSettings):
    embed: EmbedConfig = EmbedConfig()
    training: FinetuneSettings
    """The definition of the untrained model; a trained model carries its own."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        return cls(embed=config.embed, training=FinetuneSettings.from_config(config, wildcards))


@stage(
    device="embed.device",
    execution_only={"embed.batch", *(f"training.finetuned.training.{key}" for key in EXECUTION_ONLY)},
)
def embed_finetuned(
    pixels: In[PixelsFile],
    manifest: In[ManifestFile],
    split: Split,
    settings: EmbedFinetunedSettings,
    report: Reporter,
    embeddings: Out[EmbeddingsFile],
    finetuned: In[DualEncoderFolder] | None = None,
    source: Source = "",
    backbone: In[BackboneFolder] | None = None,
    tokenizers: dict[str, In[TokenizerFile]] | None = None,
    tags: In[TagsFile] | None = None,
    pairs: In[PairsFile] | None = None,
) -> None:
    """Embed every image and caption of a split. Without a trained model, use the initial weights."""
    from vitcapr.encoders.precision import resolve_device
    from vitcapr.formats.embeddings import write_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.tokens import TagTable
    from vitcapr.retrieval.embedder import embed_split
    from vitcapr.retrieval.finetuned import captions_to_read, check_pixels, open_finetuned, open_untrained
    from vitcapr.store.reader import open_features

    data, store = read_manifest(manifest), open_features(pixels)
    check_pixels(store, data, pixels)
    device, words = resolve_device(settings.embed.device), None if tags is None else TagTable.read(tags)
    if finetuned is not None:
        opened = open_finetuned(finetuned, store, device, words)
    else:
        opened = open_untrained(settings.training, store, str(backbone or source), tokenizers or {}, device, words)
    captions = captions_to_read(data, opened.languages, pairs, split)
    images, texts, rows = opened.images(store), opened.captions(captions), data.rows(split)
    write_embeddings(embeddings, embed_split(images, texts, rows, captions, settings.embed.batch, report))
