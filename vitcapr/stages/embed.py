from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Device, In, Out, Split, stage
from vitcapr.progress import Reporter


@stage()
def embed(
    features: In[kinds.FeaturesFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    retriever: In[kinds.ModelFolder],
    split: Split,
    report: Reporter,
    embeddings: Out[kinds.EmbeddingsFile],
    augmented_views: list[In[kinds.FeaturesFile]] | None = None,
    text_features: In[kinds.TextFeaturesFile] | None = None,
    device: Device = "auto",
) -> None:
    """Embed every image and caption of a split."""
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.formats.embeddings import write_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.retrieval.embedder import embed_split, open_augmented_views, open_retriever

    data = read_manifest(manifest)
    opened = open_retriever(retriever, vocabulary=vocabulary, device=resolve_device(device))
    stores = open_augmented_views(data, opened.augmented_views, features, augmented_views, opened.layer)
    captions = data.captions_of(split, opened.language)
    embed_images, embed_captions = opened.image_embedder(*stores), opened.caption_embedder(data, text_features)
    write_embeddings(embeddings, embed_split(embed_images, embed_captions, captions, report))
