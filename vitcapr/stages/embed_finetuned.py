"""Embed a split with a fine-tuned dual encoder, or with the same model before fine-tuning."""

from typing import Any, Self

from vitcapr.config.base import StageSettings
from vitcapr.config.finetuned_dual_encoder import EXECUTION_ONLY, FinetuneSettings
from vitcapr.config.retriever import EmbedConfig
from vitcapr.errors import UserError
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
    import numpy as np
    import torch

    from vitcapr.encoders.precision import resolve_device
    from vitcapr.formats.embeddings import Embeddings, write_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.tokens import TagTable
    from vitcapr.retrieval.finetuned import (
        FinetunedEmbedder,
        captions_to_read,
        check_pixels,
        check_tags,
        open_finetuned,
    )
    from vitcapr.retrieval.finetuned_towers import untrained_finetuned
    from vitcapr.store.reader import open_features

    data, store = read_manifest(manifest), open_features(pixels)
    check_pixels(store, data, pixels)
    device = resolve_device(settings.embed.device)
    words = None if tags is None else TagTable.read(tags)
    if finetuned is not None:
        opened = open_finetuned(finetuned, store, device, words)
    else:
        torch.manual_seed(settings.training.finetuned.seed_in(settings.training.seed))
        model, _, readers, _ = untrained_finetuned(settings.training, store, str(backbone or source), tokenizers or {})
        check_tags(model, words)
        opened = FinetunedEmbedder(model.to(device).eval(), readers, device, words)
    images = data.rows(split)
    captions = captions_to_read(data, opened.languages, pairs, split)
    if not len(images) or captions.empty:
        raise UserError(f"the data set {data.dataset} has no images or no captions in the split '{split}'")
    batch = settings.embed.batch
    caption_row = captions["caption_row"].to_numpy()
    with report.track("embed", len(images) + len(captions), "images and captions") as tracker:
        embedded = Embeddings(
            images=opened.images(store).embed(images, batch, tracker.advance),
            captions=opened.captions(captions).embed(caption_row, batch, tracker.advance),
            image_row=images.astype(np.int32),
            caption_row=caption_row.astype(np.int32),
            caption_image=np.searchsorted(images, captions["image_row"]).astype(np.int32),
        )
    write_embeddings(embeddings, embedded)
