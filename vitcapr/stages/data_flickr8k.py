"""Read Flickr8k from the user's files and write its manifest."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from vitcapr.config.data import Flickr8kConfig
from vitcapr.config.dataset import PhotographSettings
from vitcapr.errors import UserError
from vitcapr.formats.kinds import DataFolder
from vitcapr.pipeline.stage import Out, stage
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


def listed(settings: Flickr8kSettings) -> "AbstractContextManager[tuple[ImageSource, Listing]]":
    """The images and captions that the files list, before any image is read."""
    from vitcapr.data.collect import listed_photographs
    from vitcapr.data.flickr8k import list_flickr8k

    flickr8k = settings.flickr8k
    if not flickr8k.text:
        raise UserError("data.flickr8k.text is not set", remedy="see config.yaml for what it should name")
    return listed_photographs(
        "data.flickr8k.images",
        flickr8k.images,
        EXPECTED,
        lambda _, files: list_flickr8k(files, Path(flickr8k.text), splits=flickr8k.splits, seed=flickr8k.seed),
    )
