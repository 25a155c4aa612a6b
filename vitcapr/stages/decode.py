"""Generate captions of a split with a trained captioner."""

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from vitcapr.decoding.hypotheses import Hypothesis


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
    import torch

    from vitcapr.decoding.batches import feature_batches
    from vitcapr.decoding.generate import generate
    from vitcapr.decoding.generated import attention_of, candidates_of
    from vitcapr.decoding.trained import open_captioner
    from vitcapr.encoders.precision import autocast, dtype_name, resolve_device, resolve_dtype
    from vitcapr.formats.captions import write_attention, write_captions
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.model import CARD, layer_of, read_card
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.store.identity import check_images
    from vitcapr.store.layer import of_layer
    from vitcapr.store.reader import open_features

    decoding = settings.decoding
    data = read_manifest(manifest)
    words = Vocabulary.read(vocabulary)
    device = resolve_device(decoding.device)
    dtype = resolve_dtype(decoding.precision, device)
    layer = layer_of(read_card(captioner / CARD), "captioner")
    with of_layer(open_features(features), layer) as store:
        check_images(store, data, features)
        model = open_captioner(captioner, words, store)
        if attention is not None and not model.attends:
            raise UserError(
                "this captioner does not attend to patches",
                where=captioner,
                remedy="omit --attention, and set decoding.attention to false",
            )
        if attention is not None and store.grid == (0, 0):
            raise UserError(
                "these features have no patch grid, so attention has no position in the picture",
                where=features,
                remedy="omit --attention, or use a backbone with output: hidden",
            )
        rows = data.rows(split)
        if not len(rows):
            raise UserError(f"the data set {data.dataset} has no images in the split '{split}'")
        model = model.to(device).eval()
        report.line(f"decode: {len(rows)} images, {decoding.method}, {dtype_name(dtype)} on {device}")
        found: list[list[Hypothesis]] = []
        with report.track("decode", len(rows), "captions") as tracker, torch.inference_mode():
            for batch in feature_batches(store, model.arrays, rows, decoding.batch_images, device):
                with autocast(device, dtype):
                    written = generate(
                        model,
                        model.encode(batch),
                        words,
                        **decoding.search(),
                        images=rows[len(found) : len(found) + decoding.batch_images].tolist(),
                        keep_attention=attention is not None,
                    )
                found += written
                tracker.advance(len(written))
    candidates = [candidates_of(hypotheses, words.decode, words.words) for hypotheses in found]
    write_captions(captions, zip(data.images["image_id"].iloc[rows].tolist(), candidates, strict=True))
    if attention is not None:
        write_attention(attention, attention_of(rows.tolist(), [hypotheses[0] for hypotheses in found], store.grid))
