"""Decode all pictures as a backbone's processor wants them into a sealed store of 8-bit pixels."""

import os

from vitcapr.artefacts.manifest import Manifest, read_manifest
from vitcapr.cli.parts.options import BackboneSource, Log, ManifestFile, SealedOutput, Settings, StoreCode, Stores
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.pixels import ExtractPixelsSettings
from vitcapr.data.images import ImageSource
from vitcapr.features.encoders.backbones import locate, model_image_size
from vitcapr.features.encoders.preprocess import read_preprocessing
from vitcapr.features.extraction.extract import Photograph
from vitcapr.features.extraction.pixels import PIXELS, decode_chunks, pixel_layout
from vitcapr.features.store.layout import FORMAT
from vitcapr.features.store.seal import write_sealed
from vitcapr.features.store.writer import StoreWriter, fingerprint_of, store_folder
from vitcapr.files import canonical_json, sha256_bytes
from vitcapr.progress import Reporter


def main(
    manifest: ManifestFile,
    stores: Stores,
    output: SealedOutput,
    settings: Settings,
    source: BackboneSource = None,
    code: StoreCode = "",
    log: Log = None,
) -> None:
    """Decode every picture once; run again after a stop, it continues where it was."""
    options = parse_settings(ExtractPixelsSettings, settings)
    wanted, chunk = options.backbone, options.pixels.chunk
    with Reporter(log) as reporter:
        data = read_manifest(manifest)
        folder = locate(source or wanted.source, wanted.revision).folder
        preprocessing, note = read_preprocessing(
            folder, model_image_size(folder), wanted.image_size, wanted.interpolation, wanted.mirror
        )
        if note:
            reporter.line(note)
        origin = {"preprocessing": preprocessing.describe(), "images_sha256": _images_digest(data)}
        fingerprint = fingerprint_of({**origin, "array": PIXELS, "chunk": chunk, "format": FORMAT, "code": code})
        attributes = {**origin, "fingerprint": fingerprint, "code": code}
        images = len(data.images)
        layout = pixel_layout(images, preprocessing.size, chunk)
        writer = StoreWriter(store_folder(stores, fingerprint), {PIXELS: layout})
        writer.begin(attributes, data.images["image_id"].tolist())
        chunks = range(-(-images // chunk))
        pending = [index for index in chunks if writer.checksums(index) is None]
        for index in pending:
            writer.clear(index)
        left = sum(min((index + 1) * chunk, images) - index * chunk for index in pending)
        reporter.line(
            f"{' x '.join(map(str, preprocessing.size))} pixels, {left} of {images} images to do, "
            f"{len(pending) * layout.chunk_bytes / 1e9:.2f} GB to write; store {writer.folder}"
        )
        with ImageSource(data.image_root) as pictures, reporter.track("decode", images, "images", images - left) as bar:
            decode_chunks(
                pending, _photographs(data), pictures, preprocessing, writer, len(os.sched_getaffinity(0)), bar
            )
        checksums = [(writer.checksums(index) or {})[PIXELS] for index in chunks]
        write_sealed(writer, attributes, {PIXELS: checksums}, "image_id", output)


def _images_digest(data: Manifest) -> str:
    """Which images, in which order, with which bytes."""
    return sha256_bytes(canonical_json(data.images[["image_id", "sha256"]].to_numpy().tolist()).encode("utf-8"))


def _photographs(data: Manifest) -> list[Photograph]:
    columns = data.images[["image_id", "path", "width", "height", "sha256"]]
    return [
        Photograph(image_id, path, int(width) * int(height), digest)
        for image_id, path, width, height, digest in columns.itertuples(index=False, name=None)
    ]


if __name__ == "__main__":
    launch(main)
