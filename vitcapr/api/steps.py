"""A stage of the workflow from Python, and a shared extraction, which is two."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vitcapr.api.trained_captioner import Device
from vitcapr.config.base import find_backbone
from vitcapr.errors import UserError
from vitcapr.experiment.paths import stores_root
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import Role, find_stage

AnyPath = str | os.PathLike[str]


def run(stage: str, settings: Mapping[str, Any] | None = None, **values: Any) -> None:
    """Run a stage of the workflow: the same files, the same bytes. A repeated call continues after an interruption.

    Examples:
        >>> study = {"manifest": "study/data", "vocabulary": "study/text/vocabulary.json"}
        >>> vitcapr.run("vocabulary", **study, tokens="study/text/tokens.npz")  # doctest: +SKIP

    Args:
        stage: its name. docs/stages.md lists all, and ``vitcapr stage NAME --help`` explains the keys of one.
        settings: its settings as keys of the configuration, with the defaults of the configuration.
        values: its files and values by their keys. A folder with a data set or with features stands for
            the ``manifest.json`` in it. Without ``stores``, feature stores are in ``VITCAPR_STORES``, or in
            ``results/stores``.

    Raises:
        UserError: a key or a setting is missing, unknown or wrong; or the stage says what it lacks.
    """
    declared = find_stage(stage)
    try:
        plain = TypeAdapter(Any).dump_python(settings or {}, mode="json")
    except ValueError as error:
        raise UserError(f"a setting must be a text, a number, a list or a dictionary: {error}", where=stage) from error
    if "stores" in declared.options:
        values = {"stores": str(stores_root()), **values}
    for each in declared.of_role(Role.INPUT):
        if each.name in values and not each.files:
            values[each.name] = _sealed(values[each.name])
    run_stage(declared, **values, **({"settings": plain} if plain else {}))


def _sealed(value: Any) -> Any:
    """Folders as the ``manifest.json`` in them."""
    if isinstance(value, str | os.PathLike):
        return Path(value) / "manifest.json" if Path(value).is_dir() else Path(value)
    return [_sealed(each) for each in value] if isinstance(value, list | tuple) else value


def extract(
    data: AnyPath,
    backbone: str,
    out: AnyPath,
    *,
    device: Device = "auto",
    batch: int = 32,
    chunk: int | None = None,
    rank: int = 0,
    of: int = 1,
    **settings: Any,
) -> Path:
    """Compute the features of every image of a data set with a frozen backbone.

    The arrays lie in ``VITCAPR_STORES``, or in ``stores`` beside ``out``. ``vitcapr.open_features(out)`` opens them.
    Several processes, on any machines that share this folder, can fill one store: each is called with its ``rank``, and
    :func:`seal` ends it. Chunks that are stored are skipped, so that a killed rank loses one chunk.

    Args:
        data: the data set.
        backbone: hub id or folder of the checkpoint.
        out: folder for the manifest of the features. Models know the backbone by the name of this folder.
        device: the device: auto, cpu or cuda.
        batch: images per forward pass.
        chunk: images per chunk of the store; None: 1,024 with ``patches`` none or ``output`` aligned, else 64.
        rank, of: the share of the images to compute, counted from 0, and the number of shares.
        settings: the keys of an entry of ``backbones``, such as ``image_size``.

    Raises:
        UserError: the checkpoint is not found or not supported.
    """
    if rank not in range(of):
        raise UserError(f"rank {rank} is not one of the {of} shares", remedy="ranks are counted from 0")
    folder, sealed = find_backbone(backbone), _manifest(out)
    files = {"manifest": data, "stores": str(stores_root(sealed.parent.parent))}
    part = sealed.parent / "parts" / f"{rank}.json"
    local = {"backbone": folder} if folder.is_dir() else {}
    plain = {
        "backbone": {"source": backbone, **settings},
        "features": {"batch": batch, "chunk": chunk},
    }
    run("extract", plain, part=part, task=rank, tasks=of, device=device, **files, **local)
    return seal(data, out) if of == 1 else Path(out)


def seal(data: AnyPath, out: AnyPath) -> Path:
    """Check that all chunks of a store that several ranks filled are there, and write its manifest.

    Raises:
        UserError: a rank has not ended, or they had different settings.
    """
    sealed = _manifest(out)
    stores = str(stores_root(sealed.parent.parent))
    # The newest says which store it is. The chunks are all checked, and earlier calls may have left other parts.
    parts = sorted(sealed.parent.glob("parts/*.json"), key=lambda path: path.stat().st_mtime_ns)[-1:]
    run("seal", parts=parts, sealed=sealed, manifest=data, stores=stores)
    return Path(out)


def _manifest(path: AnyPath) -> Path:
    """``manifest.json`` in a folder that may not exist yet, or a path of such a file."""
    return Path(path) if Path(path).suffix == ".json" else Path(path) / "manifest.json"
