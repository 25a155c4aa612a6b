"""Photographs that a user names: files, folders, patterns that the shell has left alone, or images in memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Union

from vitcapr.errors import UserError
from vitcapr.files import read_file

if TYPE_CHECKING:
    from PIL import Image

ImageLike = Union[str, Path, "Image.Image"]
"""The path of an image, or an image in memory."""

FIGURE_SUFFIX = ".attention.png"
"""What is drawn beside a photograph ends so, and is not a photograph the next time its folder is read."""
MAX_PIXELS = 100_000_000


def find_photographs(arguments: Sequence[str]) -> tuple[list[Path], dict[str, str], dict[str, int]]:
    """The files that the arguments name, each once, in the order of the arguments and by name within one.

    A folder stands for the pictures in it, known by their endings; a pattern may contain ``**``.

    Returns:
        The files; the arguments that name none, each with the reason; and for each folder that has them, the number of
        files that are no pictures by their endings, without hidden files and our own figures.
    """
    images: dict[Path, None] = {}
    nothing: dict[str, str] = {}
    skipped: dict[str, int] = {}
    for argument in arguments:
        path = Path(argument).expanduser()
        if path.is_dir():
            inside = [file for file in path.iterdir() if file.is_file() and not _is_ours_or_hidden(file)]
            files, reason = [file for file in inside if _is_picture(file)], "no picture in this folder"
            if len(files) < len(inside):
                skipped[argument] = len(inside) - len(files)
        elif path.exists():
            files, reason = [path], ""
        elif set("*?[") & set(argument):
            root = Path(path.anchor)
            matches = root.glob(str(path.relative_to(root)))
            files, reason = [file for file in matches if _is_picture(file)], "no picture matches"
        else:
            files, reason = [], "no such file"
        if not files:
            nothing[argument] = reason
        images.update(dict.fromkeys(sorted(files)))
    return list(images), nothing, skipped


def open_photograph(path: Path) -> "Image.Image":
    """The picture upright, in RGB, as :func:`vitcapr.data.images.decode` gives it.

    Raises:
        BadImage: it is no usable picture, or larger than ``MAX_PIXELS``.
    """
    from vitcapr.data.images import BadImage, decode

    try:
        content = read_file(path)
    except OSError as error:
        raise BadImage(f"unreadable: {error.strerror}") from error
    return decode(content, MAX_PIXELS)


def as_list(images: ImageLike | Sequence[ImageLike]) -> list[ImageLike]:
    """One image or several, as a list."""
    return list(images) if isinstance(images, Sequence) and not isinstance(images, str) else [images]


def open_image(image: ImageLike) -> "Image.Image":
    """The image upright and in RGB."""
    from vitcapr.data.images import BadImage, as_rgb

    try:
        return open_photograph(Path(image).expanduser()) if isinstance(image, str | Path) else as_rgb(image)
    except BadImage as error:
        raise UserError(f"this image cannot be used: {error.reason}", where=name_of(image) or None) from error


def name_of(image: ImageLike) -> str:
    """The path as it was given; empty for an image in memory."""
    return str(image) if isinstance(image, str | Path) else ""


def _is_picture(path: Path) -> bool:
    from vitcapr.data.images import SUFFIXES  # numpy and Pillow load for a mistake in a path otherwise

    return path.name.lower().endswith(SUFFIXES) and not _is_ours_or_hidden(path) and path.is_file()


def _is_ours_or_hidden(path: Path) -> bool:
    return path.name.startswith(".") or path.name.lower().endswith(FIGURE_SUFFIX)
