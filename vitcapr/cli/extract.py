"""Run one task's share of the images through a backbone into the feature store."""

import shutil
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from vitcapr.artefacts.manifest import Manifest, read_manifest
from vitcapr.cli.parts.options import BackboneSource, Log, ManifestFile, Settings, StoreCode, Stores
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.features import ExtractSettings
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.features.encoders.backbones import locate, model_image_size, weights_digest
from vitcapr.features.encoders.image_towers import NO_GRID, ImageTower, kind_of, load_image_tower
from vitcapr.features.encoders.loading import memory_line
from vitcapr.features.encoders.precision import dtype_name, resolve_device, resolve_dtype
from vitcapr.features.encoders.preprocess import read_preprocessing
from vitcapr.features.extraction.extract import Photograph, extract_chunks
from vitcapr.features.store.claims import claimed
from vitcapr.features.store.layout import FORMAT, ArrayLayout, chunk_range
from vitcapr.features.store.seal import write_part
from vitcapr.features.store.writer import StoreWriter, fingerprint_of, finished, read_layouts, store_folder
from vitcapr.files import canonical_json, sha256_bytes
from vitcapr.progress import Reporter


def main(
    manifest: ManifestFile,
    stores: Stores,
    output: Annotated[Path, typer.Option(help="part.json of this task.")],
    settings: Settings,
    source: BackboneSource = None,
    task: Annotated[int, typer.Option(min=0, help="Which share, from 0.")] = 0,
    tasks: Annotated[int, typer.Option(min=1, help="How many shares there are.")] = 1,
    code: StoreCode = "",
    log: Log = None,
) -> None:
    """Extract features of one share of the images."""
    if task >= tasks:
        raise UserError(f"--task {task} of --tasks {tasks}", remedy="tasks count from 0")
    options = parse_settings(ExtractSettings, settings)
    wanted, cut = options.backbone, options.features
    if cut.chunk % cut.batch:
        raise UserError(f"features.batch {cut.batch} does not divide features.chunk {cut.chunk}", where="--settings")
    with Reporter(log) as reporter:
        data = read_manifest(manifest)
        device = resolve_device(cut.device)
        dtype = resolve_dtype(wanted.dtype, device)
        checkpoint = locate(source or wanted.source, wanted.revision)
        preprocessing, note = read_preprocessing(
            checkpoint.folder,
            model_image_size(checkpoint.folder),
            wanted.image_size,
            wanted.interpolation,
            wanted.mirror,
        )
        if note:
            reporter.line(note)
        kind_of(checkpoint.folder, wanted.kind, wanted.output)
        origin = {
            "backbone": _name(wanted.source),
            "revision": checkpoint.revision,
            "weights_sha256": weights_digest(checkpoint.folder),
            "preprocessing": preprocessing.describe(),
            "output": wanted.output,
            "query_pool": wanted.pool if wanted.output == "qformer" else None,
            "dtype": dtype_name(dtype),
            "store_dtype": wanted.store_dtype,
            "images_sha256": _images_digest(data),
        }
        fingerprint = fingerprint_of({**origin, "chunk": cut.chunk, "format": FORMAT, "code": code})
        images = len(data.images)
        mine = chunk_range(-(-images // cut.chunk), task, tasks)
        folder = store_folder(stores, fingerprint)
        layouts = read_layouts(folder)
        if layouts is not None and all(finished(folder, layouts, index) for index in mine):
            reporter.line(f"{wanted.source}: all {len(mine)} chunks of task {task} of {tasks} stand in {folder}")
            write_part(output, fingerprint, StoreWriter(folder, layouts), mine)
            return

        backbone = load_image_tower(
            checkpoint.folder,
            kind=wanted.kind,
            output=wanted.output,
            pool=wanted.pool,
            size=preprocessing.size,
            dtype=dtype,
            device=device,
        )
        writer = StoreWriter(folder, _layouts(images, backbone, cut.chunk, wanted.store_dtype))
        attributes: dict[str, Any] = {**origin, "fingerprint": fingerprint, "code": code}
        if backbone.grid != NO_GRID:
            attributes["grid"] = list(backbone.grid)
        with claimed(folder, mine, reporter.line):
            writer.begin(attributes, data.images["image_id"].tolist())
            pending = [index for index in mine if writer.checksums(index) is None]
            for index in pending:
                writer.clear(index)
            total = _images_in(list(mine), cut.chunk, images)
            left = _images_in(pending, cut.chunk, images)
            reporter.line(
                f"{wanted.source}: {_arrays(backbone)}, {dtype_name(dtype)} "
                f"on {device.type}, task {task} of {tasks}, {left} of {total} images to do; "
                f"store {folder}"
            )
            _warn_of_space(writer, len(pending), reporter)
            with (
                ImageSource(data.image_root) as pictures,
                reporter.track("extract", total, "images", total - left) as bar,
            ):
                extract_chunks(
                    pending,
                    _photographs(data),
                    pictures,
                    preprocessing,
                    backbone,
                    writer,
                    cut.batch,
                    torch.get_num_threads(),
                    bar,
                )
            reporter.line(memory_line(backbone.model, device))
        write_part(output, fingerprint, writer, mine)


def _layouts(images: int, backbone: ImageTower, chunk: int, dtype: str) -> dict[str, ArrayLayout]:
    axes = {"patches": ("image", "patch", "channel"), "cls": ("image", "channel")}
    return {
        name: ArrayLayout((images, *shape), chunk, dtype, axes[name]) for name, shape in sorted(backbone.shapes.items())
    }


def _arrays(backbone: ImageTower) -> str:
    """What a picture becomes: ``14 x 14 patches of 768``, ``32 tokens of 768``, ``a vector of 512``."""
    if "patches" not in backbone.shapes:
        return f"a vector of {backbone.shapes['cls'][0]}"
    tokens, width = backbone.shapes["patches"]
    if backbone.grid == NO_GRID:
        return f"{tokens} tokens of {width}"
    return f"{backbone.grid[0]} x {backbone.grid[1]} patches of {width}"


def _name(source: str) -> str:
    """What a store is said to come from: the same on every machine, so never an absolute path."""
    return Path(source).name if Path(source).expanduser().is_absolute() else source


def _images_digest(data: Manifest) -> str:
    """Which images, in which order, with which bytes."""
    return sha256_bytes(canonical_json(data.images[["image_id", "sha256"]].to_numpy().tolist()).encode("utf-8"))


def _photographs(data: Manifest) -> list[Photograph]:
    columns = data.images[["image_id", "path", "width", "height", "sha256"]]
    return [
        Photograph(image_id, path, int(width) * int(height), digest)
        for image_id, path, width, height, digest in columns.itertuples(index=False, name=None)
    ]


def _images_in(chunks: list[int], chunk: int, images: int) -> int:
    return sum(min((index + 1) * chunk, images) - index * chunk for index in chunks)


def _warn_of_space(writer: StoreWriter, chunks: int, reporter: Reporter) -> None:
    """Said at the start, so that a night's extraction is not the way to find out; some disks compress, so no error."""
    needed = chunks * sum(layout.chunk_bytes for layout in writer.layouts.values())
    free = shutil.disk_usage(writer.folder).free
    if needed > free:
        reporter.line(f"warning: {needed / 1e9:.1f} GB to write, {free / 1e9:.1f} GB free at {writer.folder}")


if __name__ == "__main__":
    launch(main)
