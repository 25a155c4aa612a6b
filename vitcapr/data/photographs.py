"""Photographs that a user gives: paths, or images in memory."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitcapr.errors import UserError
from vitcapr.files import read_untrusted

if TYPE_CHECKING:
    from PIL import Image

ImageLike = Any
"""The path of an image, a picture of Pillow, the bytes of a file or an open file, or an RGB array (H, W, 3) of uint8;
:func:`open_image` refuses everything else. Some functions take several of them."""

MAX_PIXELS = 100_000_000
"""Most pixels of a picture that is decoded, which take 300 MB."""


def open_photograph(path: Path) -> "Image.Image":
    """Return the picture upright, in RGB, as :func:`vitcapr.data.images.decode` gives it.

    Raises:
        BadImage: it is no usable picture, or larger than ``MAX_PIXELS``.
    """
    from vitcapr.data.images import BadImage, decode

    try:
        content = read_untrusted(path)
    except OSError as error:
        raise BadImage(f"unreadable: {error.strerror}") from error
    return decode(content, MAX_PIXELS)


def as_list(images: ImageLike) -> list[ImageLike]:
    """Return one image or several as a list; an array of four axes is several images."""
    several = isinstance(images, Iterable) and not isinstance(images, str | os.PathLike | bytes | bytearray)
    one = hasattr(images, "read") or getattr(images, "ndim", 1) in (2, 3)
    return list(images) if several and not one else [images]


def open_image(image: ImageLike) -> "Image.Image":
    """Return the image upright and in RGB.

    Raises:
        UserError: it is no usable picture.
    """
    import numpy as np
    from PIL import Image

    from vitcapr.data.images import BadImage, as_rgb, decode

    try:
        if isinstance(image, str | os.PathLike):
            return open_photograph(Path(image).expanduser())
        if isinstance(image, Image.Image):
            return as_rgb(image)
        content = image.read() if hasattr(image, "read") else image
        if isinstance(content, bytes | bytearray):
            return decode(bytes(content), MAX_PIXELS)
        if (
            isinstance(image, np.ndarray)
            and image.dtype == np.uint8
            and image.size
            and image.ndim == 3
            and image.shape[2] == 3
        ):
            return Image.fromarray(image)
        what = f"{image.dtype} of shape {tuple(image.shape)}" if hasattr(image, "dtype") else type(image).__name__
        raise BadImage(f"it is {what}, not a path, a picture of Pillow, bytes, or an array (H, W, 3) of uint8")
    except (BadImage, OSError, ValueError) as error:
        raise UserError(f"this image cannot be used: {error}", where=name_of(image) or None) from error


def name_of(image: ImageLike) -> str:
    """Return the path as it was given; empty for an image in memory."""
    return str(image) if isinstance(image, str | os.PathLike) else ""
