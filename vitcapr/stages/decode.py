from vitcapr.config.base import StageSettings
from vitcapr.config.captioner import DecodingConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Device, In, Out, Split, stage
from vitcapr.progress import Reporter


class DecodeSettings(StageSettings):
    decoding: DecodingConfig = DecodingConfig()


@stage(cached=True, execution_only={"decoding.batch_images"})
def decode(
    features: In[kinds.FeaturesFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    captioner: In[kinds.ModelFolder],
    split: Split,
    settings: DecodeSettings,
    report: Reporter,
    captions: Out[kinds.CaptionsFile],
    attention: Out[kinds.AttentionFile] | None = None,
    device: Device = "auto",
) -> None:
    """Generate a caption for every image of a split."""
    from vitcapr.decoding.generate import decode_split
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.formats.captions import write_attention, write_captions
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.vocabulary import Vocabulary

    data, words, attends = read_manifest(manifest), Vocabulary.read(vocabulary), attention is not None
    decoded, weights = decode_split(
        captioner, features, data, split, words, settings.decoding, attends, resolve_device(device), report
    )
    write_captions(captions, decoded)
    if attention is not None and weights is not None:
        write_attention(attention, weights)
