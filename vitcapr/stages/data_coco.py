"""Read MS COCO from the user's files and write its manifest."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from vitcapr.config.data import CocoConfig
from vitcapr.config.dataset import PhotographSettings
from vitcapr.errors import UserError
from vitcapr.formats.kinds import DataFolder
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.data.collect import Listing
    from vitcapr.data.images import ImageSource

EXPECTED = "name the folder that holds train2014/, val2014/, train2017/ or val2017/, or one of these"


class CocoSettings(PhotographSettings):
    coco: CocoConfig = CocoConfig()


@stage()
def data_coco(settings: CocoSettings, report: Reporter, folder: Out[DataFolder]) -> None:
    """Check the photographs and captions of MS COCO and write their manifest."""
    from vitcapr.data.collect import collect

    with listed(settings) as (source, listing):
        collect(
            listing,
            source,
            folder,
            dataset="coco",
            language="en",
            max_pixels=settings.max_pixels,
            on_bad_image=settings.on_bad_image,
            limit=settings.coco.limit,
            reporter=report,
        )


def listed(settings: CocoSettings) -> "AbstractContextManager[tuple[ImageSource, Listing]]":
    """The images and captions that the files list, before any image is read."""
    from vitcapr.data.coco import list_coco, list_karpathy
    from vitcapr.data.collect import listed_photographs

    coco = settings.coco
    if not (coco.annotations or coco.karpathy):
        raise UserError("data.coco.annotations is not set", remedy="list captions_*.json files, or set coco.karpathy")

    def list_images(_: "ImageSource", files: list[str]) -> "Listing":
        if coco.karpathy:
            return list_karpathy(files, Path(coco.karpathy), restval=coco.restval)
        return list_coco(files, [Path(file) for file in coco.annotations])

    return listed_photographs("data.coco.images", coco.images, EXPECTED, list_images)
