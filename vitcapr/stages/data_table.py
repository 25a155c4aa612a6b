"""Read the user's own photographs and captions and write their manifest."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from vitcapr.config.data import TableConfig
from vitcapr.config.dataset import PhotographSettings
from vitcapr.formats.kinds import DataFolder
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.data.collect import Listing
    from vitcapr.data.images import ImageSource

EXPECTED = "name the folder or zip of the images"


class TableSettings(PhotographSettings):
    table: TableConfig = TableConfig()


@stage()
def data_table(settings: TableSettings, report: Reporter, folder: Out[DataFolder]) -> None:
    """Check the user's own photographs and captions and write their manifest."""
    from vitcapr.data.collect import collect

    with listed(settings) as (source, listing):
        collect(
            listing,
            source,
            folder,
            dataset="table",
            language=settings.table.language,
            max_pixels=settings.max_pixels,
            on_bad_image=settings.on_bad_image,
            limit=settings.table.limit,
            reporter=report,
            reject_duplicates=True,
        )


def listed(settings: TableSettings) -> "AbstractContextManager[tuple[ImageSource, Listing]]":
    """The images and captions that the files list, before any image is read."""
    from vitcapr.data.collect import Rejected, listed_photographs
    from vitcapr.data.table import Columns, list_table
    from vitcapr.data.table_files import read_beside, read_captions

    table = settings.table
    captions = Path(table.captions) if table.captions else None

    def list_images(source: "ImageSource", files: list[str]) -> "Listing":
        rejected: Rejected = []
        return list_table(
            read_beside(source.root, files, rejected) if captions is None else read_captions(captions, rejected),
            table.columns.to(Columns),
            where=captions or Path(table.images),
            root=source.root,
            files=files,
            splits=table.splits,
            validation=table.validation,
            test=table.test,
            seed=table.seed,
            rejected=rejected,
        )

    return listed_photographs("data.table.images", table.images, EXPECTED, list_images)
