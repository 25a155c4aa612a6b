from pathlib import Path
from typing import Any

from vitcapr.config.base import StageSettings
from vitcapr.config.features import FeaturesConfig, Terms, TextEncoderConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import CodeHash, Device, In, Out, StoreRoot, stage
from vitcapr.progress import Reporter


class ExtractTextSettings(StageSettings):
    text_encoder: TextEncoderConfig
    reuse: bool = FeaturesConfig().reuse
    content_check: bool = FeaturesConfig().content_check
    terms: Terms = Terms()

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "ExtractTextSettings":
        encoder, features = config.text_encoders[wildcards.encoder], config.features
        shared = {"reuse": features.reuse, "content_check": features.content_check}
        return cls(text_encoder=encoder, **shared, terms=Terms.of(config.data))


@stage(execution_only={"content_check", "reuse", "stores", "terms"})
def extract_text(
    manifest: In[kinds.ManifestFile],
    stores: StoreRoot,
    settings: ExtractTextSettings,
    report: Reporter,
    code: CodeHash,
    sealed: Out[kinds.TextFeaturesFile],
    device: Device = "auto",
) -> None:
    """Extract features of every caption. After an interruption, the same command continues."""
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.encoders.text_encoders import TextRecipe
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.store.caption_rows import CHUNK, CaptionFeatures
    from vitcapr.store.content import check_store_content
    from vitcapr.store.fill import StorePlan, fill, terms_of
    from vitcapr.store.layout import Rows
    from vitcapr.store.reader import open_features
    from vitcapr.store.sealing import write_sealed

    config, data = settings.text_encoder, read_manifest(manifest)
    rows = Rows.of_captions(data)
    recipe = TextRecipe(device=resolve_device(device), **config.values("store_dtype"))
    if recipe.note:
        report.line(recipe.note)
    attributes = {**recipe.attributes, "store_dtype": config.store_dtype}
    terms = terms_of(data, settings.terms.licence, settings.terms.source, recipe.checkpoint.folder)
    plan = StorePlan(Path(stores), rows, attributes, CHUNK, code, terms)

    load = lambda: CaptionFeatures(rows, recipe.load(), config.store_dtype)  # noqa: E731
    writer = fill(plan, range(plan.chunks), load, batch=CHUNK, reuse=settings.reuse, report=report)
    write_sealed(writer, rows.id_parts(), "caption_id", sealed)
    with open_features(sealed) as features:
        check_store_content(features, data, settings.content_check, report.line, computed_here=True)
