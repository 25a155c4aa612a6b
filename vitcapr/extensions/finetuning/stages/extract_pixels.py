from pathlib import Path

from vitcapr.config.features import CHUNK, EXECUTION_ONLY, ExtractSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import CodeHash, In, Out, StoreRoot, stage
from vitcapr.progress import Reporter


@stage(execution_only={*EXECUTION_ONLY, "stores", "terms"})
def extract_pixels(
    manifest: In[kinds.ManifestFile],
    stores: StoreRoot,
    settings: ExtractSettings,
    report: Reporter,
    code: CodeHash,
    sealed: Out[kinds.PixelsFile],
    backbone: In[kinds.BackboneFolder] | None = None,
) -> None:
    """Decode every picture once into 8-bit pixels, for the trained backbone or that of the settings.

    After an interruption, the same command continues.
    """
    from vitcapr.data.images import ImageSource
    from vitcapr.encoders.checkpoints import locate
    from vitcapr.encoders.image_towers import model_image_size
    from vitcapr.encoders.preprocess import read_preprocessing
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.store.fill import StorePlan, fill, terms_of
    from vitcapr.store.image_rows import Pixels
    from vitcapr.store.layout import Rows
    from vitcapr.store.sealing import write_sealed

    config, cut, data = settings.backbone, settings.features, read_manifest(manifest)
    chunk = cut.chunk or CHUNK
    folder = locate(config.source if backbone is None else str(backbone), config.revision).folder
    changes = config.model_dump(include={"image_size", "interpolation", "mirror"})
    preprocessing, note = read_preprocessing(folder, model_image_size(folder), **changes)
    if note:
        report.line(note)
    terms = terms_of(data, settings.terms.licence, settings.terms.source, None)
    recipe = {"preprocessing": preprocessing.describe()}
    plan = StorePlan(Path(stores), Rows.of_images(data), recipe, chunk, code, terms)
    with ImageSource(data.image_root) as source:
        pixels = Pixels(data.image_table, source, preprocessing)
        writer = fill(plan, range(plan.chunks), lambda: pixels, batch=chunk, reuse=cut.reuse, report=report)
    write_sealed(writer, plan.rows.id_parts(), "image_id", sealed)
