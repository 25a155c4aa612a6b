"""Read Flickr8k from the user's files and write its manifest."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from vitcapr.config.data import Flickr8kConfig
from vitcapr.config.dataset import PhotographSettings
from vitcapr.declaration.kinds import DataFolder
from vitcapr.declaration.stage import Out, stage
from vitcapr.errors import UserError
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.data.collect import Listing
    from vitcapr.data.images import ImageSource

EXPECTED = "name the folder Flicker8k_Dataset or Flickr8k_Dataset.zip"


class Flickr8kSettings(PhotographSettings):
    flickr8k: Flickr8kConfig = Flickr8kConfig()


@stage()
def data_flickr8k(settings: Flickr8kSettings, report: Reporter, folder: Out[DataFolder]) -> None:
    """Check the photographs and captions of Flickr8k and write their manifest."""
    from vitcapr.data.collect import collect

    with listed(settings) as (source, listing):
        collect(
            listing,
            source,
            folder,
            dataset="flickr8k",
            language="en",
            max_pixels=settings.max_pixels,
            on_bad_image=settings.on_bad_image,
            limit=settings.flickr8k.limit,
            reporter=report,
        )


@contextmanager
def listed(settings: Flickr8kSettings) -> "Iterator[tuple[ImageSource, Listing]]":
    """The images and captions that the files list, before any image is read."""
    from vitcapr.data.flickr8k import list_flickr8k
    from vitcapr.data.images import ImageSource

    flickr8k = settings.flickr8k
    for key, value in (("images", flickr8k.images), ("text", flickr8k.text)):
        if not value:
            raise UserError(f"data.flickr8k.{key} is not set", remedy="see config.yaml for what it should name")
    if not Path(flickr8k.images).exists():
        raise UserError("data.flickr8k.images: no such folder or zip", where=flickr8k.images, remedy=EXPECTED)
    with ImageSource(Path(flickr8k.images)) as source:
        listing = list_flickr8k(source.files(), Path(flickr8k.text), splits=flickr8k.splits, seed=flickr8k.seed)
        if all(image.path is None for image in listing.images):
            raise UserError("data.flickr8k.images: no photographs found", where=flickr8k.images, remedy=EXPECTED)
        yield source, listing
