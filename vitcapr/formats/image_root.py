"""The place of a data set's images, in a file of its own beside the manifest.

Content identifies a data set, and its place does not: photographs that move change no byte of ``manifest.json``.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError
from vitcapr.files import write_text

LOCATION = "image_root.txt"
IN_A_FOLDER = (".tar", ".parquet")
"""Endings of a file of photographs that is read as a folder which holds nothing else."""


def inside(directory: Path, image_root: Path) -> str | None:
    """Return the path of images that lie in the folder of their manifest, from there on; None for others."""
    root, base = image_root.resolve(), directory.resolve()
    return root.relative_to(base).as_posix() if root.is_relative_to(base) else None


def write_location(directory: Path, image_root: Path) -> None:
    """Write the place of the images beside the manifest in ``directory``, unless it stands there already.

    The path is relative if both lie below the working folder, so that a study can be moved as a whole.
    """
    root, base, here = image_root.resolve(), directory.resolve(), Path.cwd().resolve()
    together = root.is_relative_to(here) and base.is_relative_to(here)
    text = f"{Path(os.path.relpath(root, base)).as_posix() if together else root.as_posix()}\n"
    path = directory / LOCATION
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)


def read_image_root(directory: Path, manifest: Mapping[str, Any]) -> Path:
    """Return the folder or zip that the paths of the images are relative to, absolute.

    Args:
        directory: of the manifest, whose content names the place of images that lie in this folder.

    Raises:
        UserError: no file says where the images lie.
    """
    if "image_root" in manifest:
        return Path(directory, manifest["image_root"]).resolve()
    path = directory / LOCATION
    try:
        return (directory / path.read_text(encoding="utf-8").rstrip("\n")).resolve()
    except (OSError, ValueError) as error:
        remedy = "write the path of their folder into this file, or run snakemake"
        raise UserError("no file says where the images lie", where=path, remedy=remedy) from error
