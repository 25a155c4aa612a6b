"""Run all captions through a frozen text encoder into a sealed feature store."""

from pathlib import Path
from typing import Any

from vitcapr.config.base import StageSettings
from vitcapr.config.data import Terms
from vitcapr.config.features import FeaturesConfig, TextEncoderConfig
from vitcapr.formats.kinds import ManifestFile, TextFeaturesFile
from vitcapr.pipeline.stage import CodeHash, In, Out, StoreRoot, stage
from vitcapr.progress import Reporter


class ExtractTextSettings(StageSettings):
    text_encoder: TextEncoderConfig
    reuse: bool = FeaturesConfig().reuse
    terms: Terms = Terms()

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "ExtractTextSettings":
        encoder = config.text_encoders[wildcards.encoder]
        return cls(text_encoder=encoder, reuse=config.features.reuse, terms=Terms.of(config.data))


@stage(device="text_encoder.device", execution_only={"text_encoder.batch", "reuse", "stores", "terms"})
def extract_text(
    manifest: In[ManifestFile],
    stores: StoreRoot,
    settings: ExtractTextSettings,
    report: Reporter,
    code: CodeHash,
    sealed: Out[TextFeaturesFile],
) -> None:
    """Extract features of every caption. After an interruption, the same command continues."""
    from vitcapr.encoders.checkpoints import source_name
    from vitcapr.encoders.precision import dtype_name, resolve_device, resolve_dtype
    from vitcapr.encoders.text_encoders import (
        WordVectorEncoder,
        load_text_encoder,
        locate_text_encoder,
        text_encoder_digest,
    )
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.store.caption_rows import CHUNK, CaptionFeatures
    from vitcapr.store.fill import StorePlan, fill, terms_of
    from vitcapr.store.rows import Rows
    from vitcapr.store.seal import write_sealed

    config, data = settings.text_encoder, read_manifest(manifest)
    device = resolve_device(config.device)
    checkpoint = locate_text_encoder(config.source, config.revision, config.output)
    dtype = WordVectorEncoder.dtype if config.output == "word_vectors" else resolve_dtype(config.dtype, device)
    recipe = {
        "backbone": source_name(config.source),
        "revision": checkpoint.revision,
        "weights_sha256": text_encoder_digest(checkpoint.folder),
        "output": config.output,
        "pool": config.pool if config.output == "hidden" else None,
        "max_length": config.max_length,
        "dtype": dtype_name(dtype),
        "store_dtype": config.store_dtype,
    }
    terms = terms_of(data, settings.terms.licence, settings.terms.source, checkpoint.folder)
    plan = StorePlan(Path(stores), Rows.of_captions(data), recipe, CHUNK, code, terms)

    def load() -> CaptionFeatures:
        encoder = load_text_encoder(
            config.source,
            revision=config.revision,
            pool=config.pool,
            dtype=config.dtype,
            device=device,
            max_length=config.max_length,
            output=config.output,
        )
        texts, length = plan.rows.origins, config.max_length
        return CaptionFeatures(texts, encoder, config.store_dtype, batch=config.batch, max_length=length, device=device)

    writer = fill(plan, range(plan.chunks), load, batch=CHUNK, reuse=settings.reuse, report=report)
    write_sealed(writer, writer.all_checksums(range(plan.chunks)), "caption_id", sealed)
