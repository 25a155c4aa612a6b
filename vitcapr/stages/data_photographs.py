"""Read photographs with captions from the user's files and write their manifest."""

from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from vitcapr.config.data import CocoConfig, Flickr8kConfig, Flickr30kConfig, TableConfig
from vitcapr.config.dataset import DatasetConfig, DataSettings, PictureChecks
from vitcapr.formats.kinds import DataFolder
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.data.collect import Listing
    from vitcapr.data.images import ImageSource


class PhotographsSettings(PictureChecks, DataSettings):
    """The section of one data set."""

    coco: CocoConfig | None = None
    flickr30k: Flickr30kConfig | None = None
    flickr8k: Flickr8kConfig | None = None
    table: TableConfig | None = None

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        data = config.data
        checks = {name: getattr(data, name) for name in PictureChecks.model_fields}
        return cls(**checks, **{data.dataset: getattr(data, data.dataset).located()})

    @property
    def dataset(self) -> tuple[str, Any]:
        """The name of the data set and its section."""
        sections = {name: getattr(self, name) for name in type(self).model_fields}
        return next((name, section) for name, section in sections.items() if isinstance(section, DatasetConfig))

    def canonical(self) -> dict[str, Any]:
        return {key: value for key, value in super().canonical().items() if value is not None}


@stage(execution_only={"max_rejected"})
def data_photographs(settings: PhotographsSettings, report: Reporter, folder: Out[DataFolder]) -> None:
    """Check the photographs and captions of Flickr8k, Flickr30k, COCO or the user and write their manifest."""
    from vitcapr.data.collect import Checks, collect

    name, section = settings.dataset
    with listed(settings) as (source, listing):
        collect(
            listing,
            source,
            folder,
            dataset=name,
            language=getattr(section, "language", "en"),
            checks=settings.to(Checks),
            limit=getattr(section, "limit", None),
            reporter=report,
            reject_duplicates=name == "table",
        )


def listed(settings: PhotographsSettings) -> "AbstractContextManager[tuple[ImageSource, Listing]]":
    """The images and captions that the files list, before any image is read."""
    from vitcapr.data import coco, flickr8k, flickr30k, table
    from vitcapr.data.collect import listed_photographs

    name, section = settings.dataset
    reader: Any = {"coco": coco, "flickr8k": flickr8k, "flickr30k": flickr30k, "table": table}[name]
    keys = section.model_dump(exclude={"images", "limit", "language"})
    list_images = partial(reader.list_images, **keys)
    return listed_photographs(f"data.{name}.images", section.images, reader.EXPECTED, list_images)
