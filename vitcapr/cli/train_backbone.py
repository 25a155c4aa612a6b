"""Train the small ViT on pictures whose objects are known."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from PIL import Image

from vitcapr.artefacts.history import write_history
from vitcapr.artefacts.manifest import Manifest, read_manifest
from vitcapr.cli.parts.options import Log, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.features import TrainBackboneSettings
from vitcapr.errors import UserError
from vitcapr.features.encoders.precision import resolve_device, resolve_dtype
from vitcapr.progress import Reporter
from vitcapr.training.backbone import Pixels, save_backbone, train_backbone
from vitcapr.training.backbone_targets import Names, Targets, build_targets, collect_names


def main(
    manifest: Annotated[Path, typer.Option(help="manifest.json of a data set with objects.")],
    output_dir: Annotated[Path, typer.Option(help="The folder of the trained backbone.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Train a ViT on the train split and save it as transformers does; history.csv has the validation accuracies."""
    training = parse_settings(TrainBackboneSettings, settings).training
    data = read_manifest(manifest)
    if data.objects is None:
        raise UserError(
            f"the data set {data.dataset} has no objects to learn from",
            where=manifest,
            remedy="name a pretrained backbone in backbones.<name>.source instead of 'trained'",
        )
    size = int(data.images["width"].iloc[0])
    if (data.images["width"] != size).any() or (data.images["height"] != size).any():
        raise UserError("the pictures to train a backbone on must be square and of one size", where=manifest)
    if size % training.patch_size:
        raise UserError(
            f"patches of {training.patch_size} pixels do not divide pictures of {size}",
            where=manifest,
            remedy="change trained_backbone.patch_size",
        )
    train_ids = data.images["image_id"].to_numpy()[data.rows("train")]
    if not len(train_ids):
        raise UserError("the train split is empty", where=manifest)
    in_train = data.objects["image_id"].isin(train_ids), data.captions["image_id"].isin(train_ids)
    names = collect_names(data.objects[in_train[0]], data.captions[in_train[1]], len(train_ids))
    grid = size // training.patch_size
    history: list[dict[str, float]] = []
    device = resolve_device("auto")
    with Reporter(log) as reporter:
        vit = train_backbone(
            _read(data, "train", names, grid, size),
            _read(data, "validation", names, grid, size),
            names,
            patch_size=training.patch_size,
            hidden_size=training.hidden_size,
            layers=training.layers,
            heads=training.heads,
            epochs=training.epochs,
            batch=training.batch,
            learning_rate=training.learning_rate,
            seed=training.seed,
            device=device,
            dtype=resolve_dtype("auto", device),
            reporter=reporter,
            on_epoch=history.append,
        )
        save_backbone(vit, output_dir)
        rows = [{name: f"{value:.6g}" for name, value in row.items()} for row in history]
        write_history(output_dir / "history.csv", rows)
        last = ", ".join(f"{name} {value:.3f}" for name, value in history[-1].items() if name != "epoch")
        reporter.line(f"after {training.epochs} epochs: {last}")


def _read(data: Manifest, split: str, names: Names, grid: int, size: int) -> tuple[Pixels, Targets]:
    """The pictures (N, size, size, 3) and targets of a split."""
    rows = data.rows(split)
    images = data.images.iloc[rows]
    pixels = np.empty((len(rows), size, size, 3), np.uint8)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for number, picture in enumerate(pool.map(_decode, (data.image_root / path for path in images["path"]))):
            pixels[number] = picture
    assert data.objects is not None
    targets = build_targets(
        images["image_id"].tolist(),
        data.objects,
        data.captions,
        names,
        image_root=data.image_root,
        grid=grid,
        size=size,
    )
    return pixels, targets


def _decode(path: Path) -> Pixels:
    with Image.open(path) as picture:
        return np.asarray(picture.convert("RGB"))


if __name__ == "__main__":
    launch(main, shelve=["output_dir"])
