"""Decode all pictures with a backbone's preprocessing into a sealed store of 8-bit pixels."""

from pathlib import Path
from typing import Any

from vitcapr.config.base import StageSettings
from vitcapr.config.features import BackboneConfig
from vitcapr.config.pixels import PixelsConfig
from vitcapr.declaration.kinds import BackboneFolder, ManifestFile, PixelsFile
from vitcapr.declaration.stage import CodeHash, In, Out, StoreRoot, stage
from vitcapr.progress import Reporter


class ExtractPixelsSettings(StageSettings):
    backbone: BackboneConfig
    pixels: PixelsConfig = PixelsConfig()

    @classmethod
    def of(cls, config: Any, wildcards: Any) -> "ExtractPixelsSettings":
        return cls(backbone=config.backbones[wildcards.backbone], pixels=config.pixels)


@stage(execution_only={"stores"})
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

    from vitcapr.artefacts.feature_manifest import FORMAT
    from vitcapr.artefacts.manifest import read_manifest
    from vitcapr.data.images import ImageSource
    from vitcapr.features.encoders.backbones import model_image_size
    from vitcapr.features.encoders.checkpoints import locate
    from vitcapr.features.encoders.preprocess import read_preprocessing
    from vitcapr.features.extraction.extract import photographs_of
    from vitcapr.features.extraction.origin import images_digest
    from vitcapr.features.extraction.pixels import PIXELS, decode_chunks, pixel_layout
    from vitcapr.features.store.layout import rows_in
    from vitcapr.features.store.seal import write_sealed
    from vitcapr.features.store.writer import StoreWriter, fingerprint_of, store_folder

    wanted, chunk = settings.backbone, settings.pixels.chunk
    data = read_manifest(manifest)
    folder = locate(wanted.source if backbone is None else str(backbone), wanted.revision).folder
    preprocessing, note = read_preprocessing(
        folder, model_image_size(folder), wanted.image_size, wanted.interpolation, wanted.mirror
    )
    if note:
        report.line(note)
    origin = {"preprocessing": preprocessing.describe(), "images_sha256": images_digest(data)}
    fingerprint = fingerprint_of({**origin, "array": PIXELS, "chunk": chunk, "format": FORMAT, "code": code})
    attributes = {**origin, "fingerprint": fingerprint, "code": code}
    images = len(data.images)
    layout = pixel_layout(images, preprocessing.size, chunk)
    writer = StoreWriter(store_folder(Path(stores), fingerprint), {PIXELS: layout})
    writer.begin(attributes, data.images["image_id"].tolist())
    chunks = range(-(-images // chunk))
    pending = [index for index in chunks if writer.checksums(index) is None]
    for index in pending:
        writer.clear(index)
    left = rows_in(pending, chunk, images)
    report.line(
        f"{' x '.join(map(str, preprocessing.size))} pixels, {left} of {images} images to do, "
        f"{len(pending) * layout.chunk_bytes / 1e9:.2f} GB to write; store {writer.folder}"
    )
    with ImageSource(data.image_root) as pictures, report.track("decode", images, "images", images - left) as bar:
        decode_chunks(pending, photographs_of(data), pictures, preprocessing, writer, len(os.sched_getaffinity(0)), bar)
    checksums = [(writer.checksums(index) or {})[PIXELS] for index in chunks]
    write_sealed(writer, attributes, {PIXELS: checksums}, "image_id", sealed)
