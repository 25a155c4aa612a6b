"""The readers of photographs with captions, by the names of their data sets."""

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from vitcapr.data import coco, flickr8k, flickr30k, table
from vitcapr.data.collect import Listing, listed_photographs
from vitcapr.data.images import ImageSource

READERS: dict[str, Any] = {"coco": coco, "flickr30k": flickr30k, "flickr8k": flickr8k, "table": table}
"""A module has ``list_images`` and, for people whose photographs are not found, ``EXPECTED``."""


def list_data_set(name: str, images: str, **keys: Any) -> AbstractContextManager[tuple[ImageSource, Listing]]:
    """The images and captions that the files of a data set list, before any image is read.

    Args:
        images: see :func:`listed_photographs`.
        keys: the other arguments of the reader.
    """
    list_images = partial(READERS[name].list_images, **keys)
    return listed_photographs(f"data.{name}.images", images, READERS[name].EXPECTED, list_images)
