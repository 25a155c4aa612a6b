from vitcapr.extensions.finetuning.config import EXECUTION_ONLY, EmbedFinetunedSettings
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
    import torch

    from vitcapr.encoders.devices import resolve_device
    from vitcapr.extensions.finetuning.finetuned import (
        captions_to_read,
        embed_split_by_towers,
        open_finetuned,
        open_pixels,
        untrained_finetuned,
    )
    from vitcapr.extensions.finetuning.text_files import TagTable
    from vitcapr.formats.embeddings import write_embeddings
    from vitcapr.formats.manifest import read_manifest

    data = read_manifest(manifest)
    store = open_pixels(pixels, data)
    if finetuned is not None:
        model, readers = open_finetuned(finetuned, store)
    else:
        torch.manual_seed(settings.training.seed)
        model, _, readers, _ = untrained_finetuned(settings.training, store, str(backbone or source), tokenizers or {})
    captions = captions_to_read(data, [name for reader in readers.values() for name in reader.languages], pairs, split)
    words = None if tags is None else TagTable.read(tags)
    embedded = embed_split_by_towers(model, readers, store, captions, words, resolve_device(device), report)
    write_embeddings(embeddings, embedded)
