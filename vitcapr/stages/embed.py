"""Embed the images and captions of a split with a trained retriever."""

from vitcapr.config.base import StageSettings
from vitcapr.config.retriever import EmbedConfig
from vitcapr.errors import UserError
from vitcapr.formats.kinds import (
    EmbeddingsFile,
    FeaturesFile,
    ManifestFile,
    ModelFolder,
    TextFeaturesFile,
    VocabularyFile,
)
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter


class EmbedSettings(StageSettings):
    embed: EmbedConfig = EmbedConfig()


@stage(device="embed.device", execution_only={"embed.batch"})
def embed(
    features: In[FeaturesFile],
    manifest: In[ManifestFile],
    vocabulary: In[VocabularyFile],
    retriever: In[ModelFolder],
    split: Split,
    settings: EmbedSettings,
    report: Reporter,
    embeddings: Out[EmbeddingsFile],
    augmented_views: list[In[FeaturesFile]] | None = None,
    text_features: In[TextFeaturesFile] | None = None,
) -> None:
    """Embed every image and caption of a split."""
    import numpy as np

    from vitcapr.encoders.precision import resolve_device
    from vitcapr.formats.embeddings import Embeddings, write_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.retrieval.augmented_views import open_augmented_views
    from vitcapr.retrieval.embedder import open_retriever

    data = read_manifest(manifest)
    opened = open_retriever(retriever, vocabulary=vocabulary, device=resolve_device(settings.embed.device))
    stores = open_augmented_views(data, opened.augmented_views, features, augmented_views, opened.layer)
    captions = data.captions_of(split, opened.words.recipe["language"])
    # In a data set of several languages an image may have no caption in this language.
    images = np.unique(captions["image_row"])
    if not len(images) or captions.empty:
        raise UserError(f"the data set {data.dataset} has no images or no captions in the split '{split}'")
    caption_row = captions["caption_row"].to_numpy()
    embed_images = opened.image_embedder(*stores)
    embed_captions = opened.caption_embedder(data, text_features)
    batch = settings.embed.batch
    with report.track("embed", len(images) + len(captions), "images and captions") as tracker:
        of_images = embed_images.embed(images, batch, tracker.advance)
        of_captions = embed_captions.embed(caption_row, batch, tracker.advance)
    written = Embeddings(
        images=of_images,
        captions=of_captions,
        image_row=images.astype(np.int32),
        caption_row=caption_row.astype(np.int32),
        caption_image=np.searchsorted(images, captions["image_row"]).astype(np.int32),
    )
    write_embeddings(embeddings, written)
