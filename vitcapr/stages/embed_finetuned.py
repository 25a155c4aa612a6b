from vitcapr.config.finetuned_dual_encoder import EXECUTION_ONLY, EmbedFinetunedSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Device, In, Out, Source, Split, stage
from vitcapr.progress import Reporter


@stage(
    execution_only={f"training.finetuned.training.{key}" for key in EXECUTION_ONLY},
)
def embed_finetuned(
    pixels: In[kinds.PixelsFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: EmbedFinetunedSettings,
    report: Reporter,
    embeddings: Out[kinds.EmbeddingsFile],
    finetuned: In[kinds.DualEncoderFolder] | None = None,
    source: Source = "",
    backbone: In[kinds.BackboneFolder] | None = None,
    tokenizers: dict[str, In[kinds.TokenizerFile]] | None = None,
    tags: In[kinds.TagsFile] | None = None,
    pairs: In[kinds.PairsFile] | None = None,
    device: Device = "auto",
) -> None:
    """Embed every image and caption of a split. Without a trained model, use the initial weights."""
    from vitcapr.encoders.precision import resolve_device
    from vitcapr.formats.embeddings import write_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.tokens import TagTable
    from vitcapr.retrieval.finetuned import open_finetuned, open_pixels, open_untrained

    data = read_manifest(manifest)
    store, target = open_pixels(pixels, data), resolve_device(device)
    words = None if tags is None else TagTable.read(tags)
    if finetuned is not None:
        opened = open_finetuned(finetuned, store, target, words)
    else:
        opened = open_untrained(settings.training, store, str(backbone or source), tokenizers or {}, target, words)
    write_embeddings(embeddings, opened.embed_split(store, data, split, pairs, report))
