"""Decode all pictures with a backbone's preprocessing into a sealed store of 8-bit pixels."""

from pathlib import Path
from typing import Any

from vitcapr.config.base import StageSettings
from vitcapr.config.features import BackboneConfig, FeaturesConfig
from vitcapr.config.pixels import PixelsConfig
from vitcapr.config.terms import Terms
from vitcapr.formats.kinds import BackboneFolder, ManifestFile, PixelsFile
from vitcapr.pipeline.stage import CodeHash, In, Out, StoreRoot, stage
from vitcapr.progress import Reporter


class ExtractPixelsSettings(StageSettings):
    backbone: BackboneConfig
    pixels: PixelsConfig = PixelsConfig()
    reuse: bool = FeaturesConfig().reuse
    terms: Terms = Terms()

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "ExtractPixelsSettings":
        backbone = config.backbones[wildcards.backbone]
        return cls(backbone=backbone, pixels=config.pixels, reuse=config.features.reuse, terms=Terms.of(config.data))


@stage(execution_only={"reuse", "stores", "terms"})
def extract_pixels(
    manifest: In[ManifestFile],
    stores: StoreRoot,
    settings: ExtractPixelsSettings,
    report: Reporter,
    code: CodeHash,
    sealed: Out[PixelsFile],
    backbone: In[BackboneFolder] | None = None,
) -> None:
    """Decode every picture once, for --backbone or the backbone of the settings. After an interruption, the same
    command continues."""
    import os

    from vitcapr.data.images import ImageSource
    from vitcapr.encoders.checkpoints import locate
    from vitcapr.encoders.image_encoders import image_size_of
    from vitcapr.encoders.preprocess import read_preprocessing
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.store_manifest import FORMAT
    from vitcapr.store.fill_images import photographs_of
    from vitcapr.store.fill_pixels import PIXELS, decode_chunks, pixel_layout
    from vitcapr.store.known_rows import KnownRows, write_row_digests
    from vitcapr.store.layout import rows_in
    from vitcapr.store.origin import images_digest, terms_of
    from vitcapr.store.seal import write_sealed
    from vitcapr.store.writer import TERMS, StoreWriter, fingerprint_of, store_folder

    wanted, chunk = settings.backbone, settings.pixels.chunk
    data = read_manifest(manifest)
    folder = locate(wanted.source if backbone is None else str(backbone), wanted.revision).folder
    preprocessing, note = read_preprocessing(
        folder, image_size_of(folder), wanted.image_size, wanted.interpolation, wanted.mirror
    )
    if note:
        report.line(note)
    origin = {"preprocessing": preprocessing.describe(), "images_sha256": images_digest(data)}
    fingerprint = fingerprint_of({**origin, "array": PIXELS, "chunk": chunk, "format": FORMAT, "code": code})
    terms = terms_of(data, settings.terms.licence, settings.terms.source, None)
    attributes = {**origin, "fingerprint": fingerprint, "code": code, TERMS: terms}
    images = len(data.images)
    layout = pixel_layout(images, preprocessing.size, chunk)
    writer = StoreWriter(store_folder(Path(stores), fingerprint), {PIXELS: layout})
    writer.begin(attributes, data.images["image_id"].tolist())
    chunks = range(-(-images // chunk))
    pending = [index for index in chunks if writer.checksums(index) is None]
    for index in pending:
        writer.clear(index)
    digests = data.images["sha256"].tolist()
    write_row_digests(writer.folder, digests)
    known = KnownRows.none(images, chunk)
    if settings.reuse:
        recipe = {"preprocessing": origin["preprocessing"], "code": code}
        known = KnownRows.find(Path(stores), recipe, digests, chunk, except_for=writer.folder)
    left = rows_in(pending, chunk, images) - known.count(pending)
    report.line(
        f"{' x '.join(map(str, preprocessing.size))} pixels, {left} of {images} images to do, "
        f"{len(pending) * layout.chunk_bytes / 1e9:.2f} GB to write; store {writer.folder}"
    )
    pending = [index for index in pending if not known.copy_chunk(index, writer)]
    with ImageSource(data.image_root) as pictures, report.track("decode", images, "images", images - left) as bar:
        workers = len(os.sched_getaffinity(0))
        decode_chunks(pending, photographs_of(data), pictures, preprocessing, writer, known, workers, bar)
    checksums = [(writer.checksums(index) or {})[PIXELS] for index in chunks]
    write_sealed(writer, {PIXELS: checksums}, "image_id", sealed)
