from pathlib import Path
from typing import Annotated

from vitcapr.config.features import CHUNK, EXECUTION_ONLY, BackboneConfig, ExtractSettings, FeaturesConfig
from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import CodeHash, Device, In, Out, StoreRoot, stage
from vitcapr.progress import Reporter


def images_in_chunk(features: FeaturesConfig, backbone: BackboneConfig) -> int:
    """Return the images in a chunk of the store, without ``chunk`` as many as suit its arrays."""
    return features.chunk or (1024 if backbone.patches == "none" or backbone.output == "aligned" else CHUNK)


@stage(execution_only={*EXECUTION_ONLY, "tasks", "stores", "terms"}, shares="part")
def extract(
    manifest: In[kinds.ManifestFile],
    stores: StoreRoot,
    settings: ExtractSettings,
    report: Reporter,
    code: CodeHash,
    part: Out[kinds.PartFile],
    backbone: In[kinds.BackboneFolder] | None = None,
    task: Annotated[int, "Which share of the images, from 0"] = 0,
    tasks: Annotated[int, "How many shares there are"] = 1,
    device: Device = "auto",
) -> None:
    """Extract features of one share of the images. Without a backbone, use the checkpoint of the settings."""
    from vitcapr.data.images import ImageSource
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.encoders.image_recipe import image_recipe
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.store.fill import StorePlan, fill, terms_of
    from vitcapr.store.image_rows import ImageFeatures, Pixels
    from vitcapr.store.layout import Rows, chunk_range
    from vitcapr.store.sealing import write_part

    if not 0 <= task < tasks:
        raise UserError(f"task {task} is not below tasks {tasks}", remedy="tasks are counted from 0")
    config, cut, data = settings.backbone, settings.features, read_manifest(manifest)
    recipe = image_recipe(
        config.source if backbone is None else str(backbone),
        resolve_device(device),
        name=config.source,
        **config.values("source"),
    )
    if recipe.note:
        report.line(recipe.note)
    terms = terms_of(data, settings.terms.licence, settings.terms.source, recipe.folder)
    plan = StorePlan(Path(stores), Rows.of_images(data), recipe.attributes, images_in_chunk(cut, config), code, terms)
    chunks = chunk_range(plan.chunks, task, tasks)
    with ImageSource(data.image_root) as source:
        pixels = Pixels(data.image_table, source, recipe.preprocessing)
        load = lambda: ImageFeatures(pixels, recipe.load(), config.store_dtype)  # noqa: E731
        writer = fill(plan, chunks, load, batch=cut.batch, reuse=cut.reuse, report=report)
    write_part(part, plan.fingerprint, writer, chunks)
