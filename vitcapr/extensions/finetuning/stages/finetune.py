from vitcapr.extensions.finetuning.config import EXECUTION_ONLY, FinetuneSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import CodeHash, Device, In, Out, Source, stage
from vitcapr.progress import Reporter


@stage(
    processes="finetuned.training.processes",
    execution_only={f"finetuned.training.{key}" for key in EXECUTION_ONLY},
)
def finetune(
    pixels: In[kinds.PixelsFile],
    manifest: In[kinds.ManifestFile],
    settings: FinetuneSettings,
    report: Reporter,
    code: CodeHash,
    finetuned: Out[kinds.DualEncoderTrainingFolder],
    source: Source = "",
    backbone: In[kinds.BackboneFolder] | None = None,
    tokenizers: dict[str, In[kinds.TokenizerFile]] | None = None,
    tags: In[kinds.TagsFile] | None = None,
    pairs: In[kinds.PairsFile] | None = None,
    device: Device = "auto",
) -> None:
    """Fine-tune a ViT and text models of the BERT family as a dual encoder.

    After an interruption by a signal, the same command continues with bit-identical results.
    """
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.extensions.finetuning.finetuned import open_pixels, untrained_finetuned
    from vitcapr.extensions.finetuning.finetuning import finetune
    from vitcapr.extensions.finetuning.text_files import TagTable
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.training.outcome import TrainingJob, digests

    data = read_manifest(manifest)
    store = open_pixels(pixels, data)
    inputs = {"pixels": store.fingerprint, **digests(data, tags=tags, pairs=pairs)}
    card = {"code": code, "inputs": inputs, "settings": settings.canonical()}
    finetune(
        TrainingJob(finetuned, card, settings.seed, resolve_device(device), report),
        settings.finetuned,
        lambda: untrained_finetuned(settings, store, str(backbone or source), tokenizers or {}),
        store,
        data,
        tags=None if tags is None else TagTable.read(tags),
        pairs=pairs,
    )
