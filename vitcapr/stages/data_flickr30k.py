"""Read Flickr30k from the user's files and write its manifest."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from vitcapr.config.data import Flickr30kConfig
from vitcapr.config.dataset import PhotographSettings
from vitcapr.errors import UserError
from vitcapr.formats.kinds import DataFolder
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.data.collect import Listing
    from vitcapr.data.images import ImageSource

EXPECTED = "name the folder of the Parquet files, or the folder flickr30k-images or a zip of it"


class Flickr30kSettings(PhotographSettings):
    flickr30k: Flickr30kConfig = Flickr30kConfig()


@stage()
def data_flickr30k(settings: Flickr30kSettings, report: Reporter, folder: Out[DataFolder]) -> None:
    """Check the photographs and captions of Flickr30k and write their manifest."""
    from vitcapr.data.collect import collect

    with listed(settings) as (source, listing):
        collect(
            listing,
            source,
            folder,
            dataset="flickr30k",
            language="en",
            max_pixels=settings.max_pixels,
            on_bad_image=settings.on_bad_image,
            limit=settings.flickr30k.limit,
            reporter=report,
        )


def listed(settings: Flickr30kSettings) -> "AbstractContextManager[tuple[ImageSource, Listing]]":
    """The images and captions that the files list, before any image is read."""
    from vitcapr.data.collect import listed_photographs

    flickr30k = settings.flickr30k
    return listed_photographs(
        "data.flickr30k.images", flickr30k.images, EXPECTED, lambda *found: _listing(flickr30k, *found)
    )


def _listing(flickr30k: Flickr30kConfig, source: "ImageSource", files: list[str]) -> "Listing":
    from vitcapr.data.flickr30k import list_photographs, list_release
    from vitcapr.data.tables import SUFFIX

    lists = Path(flickr30k.lists) if flickr30k.lists else None
    if flickr30k.text:
        return list_photographs(files, Path(flickr30k.text), splits=flickr30k.splits, lists=lists, seed=flickr30k.seed)
    tables = [name for name in files if name.endswith(SUFFIX)]
    if not tables:
        raise UserError(
            "data.flickr30k.images: no Parquet files found",
            where=source.root,
            remedy="name their folder or, for a folder of photographs, set data.flickr30k.text",
        )
    return list_release(source.root, tables, splits=flickr30k.splits, lists=lists, seed=flickr30k.seed)
