"""Checkpoints on disk: where they are, and the digest of their weights. Nothing here loads transformers."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from vitcapr.encoders.preprocess import PROCESSORS
from vitcapr.errors import UserError
from vitcapr.files import read_json, sha256_bytes, sha256_file

MODEL_CARD = "README.md"
_WEIGHTS = ["model.safetensors", "model.safetensors.index.json", "model-*-of-*.safetensors"]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk.

    Attributes:
        folder: the folder of ``config.json``, the weights and usually ``preprocessor_config.json``.
        revision: the commit of a hub id; None for a folder.
    """

    folder: Path
    revision: str | None


def locate(source: str, revision: str) -> Checkpoint:
    """Find ``source``: under ``VITCAPR_BACKBONES``, as a folder, or on the hub (its cache first if offline).

    Raises:
        UserError: it is not found.
    """
    root = os.environ.get("VITCAPR_BACKBONES")
    places = [Path(root).expanduser() / source] if root and not Path(source).is_absolute() else []
    places.append(Path(source).expanduser())
    for place in places:
        if (place / "config.json").is_file():
            return Checkpoint(place.resolve(), None)
        if place.is_dir():
            raise UserError(f"the folder of backbone '{source}' has no config.json", where=place)
    remedy = "put the checkpoint's folder under VITCAPR_BACKBONES, or run where the hub can be reached"
    if Path(source).is_absolute() or source.startswith((".", "~")) or source.count("/") > 1:
        raise UserError(f"backbone '{source}' is not a folder", where=places[-1], remedy="check the path")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            source, revision=revision, allow_patterns=[MODEL_CARD, "config.json", *PROCESSORS, *_WEIGHTS]
        )
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        looked = ", ".join(str(place) for place in places)
        what = f"backbone '{source}' (revision {revision}) is neither a local folder nor to be had from the hub"
        raise UserError(what, where=f"looked in {looked}", remedy=remedy) from error
    return Checkpoint(Path(folder).resolve(), Path(folder).name)


def model_type(folder: Path) -> str:
    """``model_type`` of ``config.json``, empty if it has none."""
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(content.get("model_type", "")) if isinstance(content, dict) else ""


def stated_licence(folder: Path) -> str | None:
    """The licence that a checkpoint states: ``license`` in the head of its model card, or in ``config.json``; None if
    it states none."""
    config = folder / "config.json"
    for stated in (_head_of_card(folder / MODEL_CARD), read_json(config) if config.is_file() else None):
        if isinstance(stated, dict) and isinstance(stated.get("license"), str):
            named = stated.get("license_name") if stated["license"] == "other" else None
            return str(named or stated["license"])
    return None


def _head_of_card(path: Path) -> Any:
    """The YAML between two lines ``---`` at the start of a model card; None if there is none."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    if lines[:1] != ["---"] or "---" not in lines[1:]:
        return None
    try:
        return yaml.safe_load("\n".join(lines[1 : lines.index("---", 1)]))
    except yaml.YAMLError:
        return None


def weights_digest(folder: Path) -> str:
    """sha256 of the configuration and of the weights: of each file's own sha256, in name order.

    Raises:
        UserError: there are no safetensors.
    """
    lines = [f"{path.name} {sha256_file(path)}" for path in [folder / "config.json", *weight_files(folder)]]
    return sha256_bytes("\n".join(lines).encode())


def weight_files(folder: Path) -> list[Path]:
    """The files of the weights, in name order.

    Raises:
        UserError: there are no safetensors.
    """
    weights = sorted({path for pattern in _WEIGHTS for path in folder.glob(pattern)})
    if not any(path.suffix == ".safetensors" for path in weights):
        pickled = any(folder.glob("*.bin"))
        raise UserError(
            "the checkpoint has no model.safetensors"
            + (", only pickled weights, which may run code" if pickled else ""),
            where=folder,
            remedy="save it again with model.save_pretrained(folder), which writes safetensors",
        )
    return weights
