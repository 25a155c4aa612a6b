"""Generate captions of a split with a trained captioner."""

from typing import Any

from vitcapr.config.base import StageSettings
from vitcapr.config.decoding import DecodingConfig
from vitcapr.errors import UserError
from vitcapr.formats.kinds import (
    AttentionFile,
    CaptionsFile,
    FeaturesFile,
    ManifestFile,
    ModelFolder,
    VocabularyFile,
)
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter


class DecodeSettings(StageSettings):
    decoding: DecodingConfig = DecodingConfig()

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "DecodeSettings":
        return cls(decoding=config.decodings[wildcards.decoding])


@stage(cached=True, device="decoding.device", execution_only={"decoding.batch_images"})
def decode(
    features: In[FeaturesFile],
    manifest: In[ManifestFile],
    vocabulary: In[VocabularyFile],
    captioner: In[ModelFolder],
    split: Split,
    settings: DecodeSettings,
    report: Reporter,
    captions: Out[CaptionsFile],
    attention: Out[AttentionFile] | None = None,
) -> None:
    """Generate a caption for every image of a split."""
    from vitcapr.decoding.generate import attention_of, candidates_of, caption_rows, open_captioner
    from vitcapr.encoders.precision import dtype_name, resolve_device, resolve_dtype
    from vitcapr.formats.captions import write_attention, write_captions
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.model import CARD, layer_of, read_card
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.store.reader import open_features

    decoding = settings.decoding
    data = read_manifest(manifest)
    words = Vocabulary.read(vocabulary)
    device = resolve_device(decoding.device)
    dtype = resolve_dtype(decoding.precision, device)
    with open_features(features).at_layer(layer_of(read_card(captioner / CARD), "captioner")) as store:
        store.check_rows("image_id", data)
        model = open_captioner(captioner, words, store, attends=attention is not None)
        rows = data.rows(split)
        if not len(rows):
            raise UserError(f"the data set {data.dataset} has no images in the split '{split}'")
        report.line(f"decode: {len(rows)} images, {decoding.method}, {dtype_name(dtype)} on {device}")
        with report.track("decode", len(rows), "captions") as tracker:
            hypotheses = caption_rows(
                model,
                store,
                rows,
                words,
                batch_images=decoding.batch_images,
                device=device,
                dtype=dtype,
                tracker=tracker,
                keep_attention=attention is not None,
                **decoding.search(),
            )
    candidates = [candidates_of(of_image, words.decode, words.words) for of_image in hypotheses]
    write_captions(captions, zip(data.images["image_id"].iloc[rows].tolist(), candidates, strict=True))
    if attention is not None:
        write_attention(attention, attention_of(rows.tolist(), [best for best, *_ in hypotheses], store.grid))
