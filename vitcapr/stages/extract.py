"""Run one task's share of the images through a backbone and write the features to the store."""

from pathlib import Path
from typing import Annotated, Any

from vitcapr.config.base import StageSettings
from vitcapr.config.features import BackboneConfig, FeaturesConfig
from vitcapr.config.terms import Terms
from vitcapr.errors import UserError
from vitcapr.formats.kinds import BackboneFolder, ManifestFile, PartFile
from vitcapr.pipeline.stage import CodeHash, In, Out, StoreRoot, stage
from vitcapr.progress import Reporter


class ExtractSettings(StageSettings):
    backbone: BackboneConfig
    features: FeaturesConfig = FeaturesConfig()
    terms: Terms = Terms()

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "ExtractSettings":
        backbone = config.backbones[wildcards.backbone]
        return cls(backbone=backbone, features=config.features, terms=Terms.of(config.data))


@stage(
    device="features.device",
    execution_only={
        *("features.tasks", "features.batch", "features.reuse", "features.near_duplicates", "features.export"),
        *("tasks", "stores", "terms"),
    },
)
def extract(
    manifest: In[ManifestFile],
    stores: StoreRoot,
    settings: ExtractSettings,
    report: Reporter,
    code: CodeHash,
    part: Out[PartFile],
    backbone: In[BackboneFolder] | None = None,
    task: Annotated[int, "Which share of the images, from 0"] = 0,
    tasks: Annotated[int, "How many shares there are"] = 1,
) -> None:
    """Extract features of one share of the images. Without --backbone, use the checkpoint of the settings."""
    import torch

    from vitcapr.building.image_recipe import image_recipe
    from vitcapr.data.images import ImageSource
    from vitcapr.encoders.base import NO_GRID
    from vitcapr.encoders.image_encoders import kind_of, load_image_encoder
    from vitcapr.encoders.precision import dtype_name, memory_line, resolve_device
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.store_manifest import FORMAT
    from vitcapr.store.claims import claimed
    from vitcapr.store.fill_images import extract_chunks, layouts_of, photographs_of, shape_of
    from vitcapr.store.known_rows import KnownRows, write_row_digests
    from vitcapr.store.layout import chunk_range, rows_in
    from vitcapr.store.origin import images_digest, terms_of
    from vitcapr.store.seal import write_part
    from vitcapr.store.writer import TERMS, StoreWriter, fingerprint_of, finished, read_layouts, store_folder

    if not 0 <= task < tasks:
        raise UserError(f"--task {task} is not below --tasks {tasks}", remedy="tasks are counted from 0")
    wanted, cut = settings.backbone, settings.features
    if cut.chunk % cut.batch:
        raise UserError(f"features.batch {cut.batch} does not divide features.chunk {cut.chunk}", where="--settings")
    data = read_manifest(manifest)
    device = resolve_device(cut.device)
    recipe = image_recipe(wanted, wanted.source if backbone is None else str(backbone), device)
    checkpoint, preprocessing = recipe.checkpoint, recipe.preprocessing
    if recipe.note:
        report.line(recipe.note)
    kind_of(checkpoint.folder, wanted.kind, wanted.output)
    origin = {**recipe.attributes, "images_sha256": images_digest(data)}
    fingerprint = fingerprint_of({**origin, "chunk": cut.chunk, "format": FORMAT, "code": code})
    images = len(data.images)
    mine = chunk_range(-(-images // cut.chunk), task, tasks)
    folder = store_folder(Path(stores), fingerprint)
    layouts = read_layouts(folder)
    if layouts is not None and all(finished(folder, layouts, index) for index in mine):
        report.line(f"{wanted.source}: all {len(mine)} chunks of task {task} of {tasks} are in {folder}")
        write_part(part, fingerprint, StoreWriter(folder, layouts), mine)
        return

    digests = data.images["sha256"].tolist()
    known = KnownRows.none(images, cut.chunk)
    if cut.reuse:
        known = KnownRows.find(Path(stores), {**recipe.attributes, "code": code}, digests, cut.chunk, except_for=folder)
    tower = load_image_encoder(
        checkpoint.folder,
        kind=wanted.kind,
        output=wanted.output,
        pool=wanted.pool,
        size=preprocessing.size,
        dtype=recipe.dtype,
        device=device,
        layers=wanted.layers or (),
    )
    writer = StoreWriter(folder, layouts_of(tower, images, cut.chunk, wanted.store_dtype))
    attributes: dict[str, Any] = {**origin, "fingerprint": fingerprint, "code": code}
    if tower.grid != NO_GRID:
        attributes["grid"] = list(tower.grid)
    attributes[TERMS] = terms_of(data, settings.terms.licence, settings.terms.source, checkpoint.folder)
    with claimed(folder, mine, report.line):
        writer.begin(attributes, data.images["image_id"].tolist())
        write_row_digests(folder, digests)
        pending = [index for index in mine if writer.checksums(index) is None]
        for index in pending:
            writer.clear(index)
        total, copied = rows_in(mine, cut.chunk, images), known.count(pending)
        left = rows_in(pending, cut.chunk, images) - copied
        report.line(
            f"{wanted.source}: {shape_of(tower)}, {dtype_name(recipe.dtype)} on {device.type}, "
            f"task {task} of {tasks}, {left} of {total} images to do; store {folder}"
        )
        if copied:
            names = ", ".join(source.folder.name for source in known.sources)
            report.line(f"the features of {copied} images are copied from other stores ({names})")
        pending = [index for index in pending if not known.copy_chunk(index, writer)]
        # Check at the start, so that a long extraction does not fail at its end.
        if warning := writer.space_warning(len(pending)):
            report.line(warning)
        with (
            ImageSource(data.image_root) as pictures,
            report.track("extract", total, "images", total - left) as bar,
        ):
            extract_chunks(
                pending,
                photographs_of(data),
                pictures,
                preprocessing,
                tower,
                writer,
                known,
                cut.batch,
                torch.get_num_threads(),
                bar,
            )
        report.line(memory_line(tower.model, device))
    write_part(part, fingerprint, writer, mine)
