from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from vitcapr.config.base import find_data, one_spelling
from vitcapr.config.data import (
    CocoConfig,
    DataSettings,
    Flickr8kConfig,
    Flickr30kConfig,
    LeaveOut,
    PhotographsConfig,
    PictureChecks,
    TableConfig,
)
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter


class PhotographsSettings(LeaveOut, PictureChecks, DataSettings):
    """The settings of the stage ``data_photographs``: the section of one data set."""

    coco: CocoConfig | None = None
    flickr30k: Flickr30kConfig | None = None
    flickr8k: Flickr8kConfig | None = None
    table: TableConfig | None = None

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        data = config.data
        checks = {name: getattr(data, name) for name in PictureChecks.model_fields}
        if data.leave_out:
            checks |= {
                "leave_out": one_spelling(str(find_data(data.leave_out))),
                "leave_out_above": data.leave_out_above,
            }
        return cls(**checks, **{data.dataset: getattr(data, data.dataset).located()})

    def user_files(self) -> Iterator[tuple[str, Path]]:
        yield from super().user_files()
        if self.leave_out:
            yield "data.leave_out", Path(self.leave_out)

    @property
    def dataset(self) -> tuple[str, PhotographsConfig]:
        """The name of the data set and its section."""
        sections = {name: getattr(self, name) for name in type(self).model_fields}
        return next((name, section) for name, section in sections.items() if isinstance(section, PhotographsConfig))

    def canonical(self) -> dict[str, Any]:
        return {key: value for key, value in super().canonical().items() if value is not None}


@stage(execution_only={"max_rejected"})
def data_photographs(settings: PhotographsSettings, report: Reporter, folder: Out[kinds.DataFolder]) -> None:
    """Check the photographs and captions of Flickr8k, Flickr30k, COCO or the user and write their manifest."""
    from vitcapr.data.collect import Checks, collect
    from vitcapr.data.leave_out import leave_out
    from vitcapr.data.readers import list_data_set

    name, section = settings.dataset
    with list_data_set(name, section.images, **section.keys()) as (source, listing):
        if settings.leave_out:
            listing = leave_out(listing, Path(settings.leave_out), settings.leave_out_above)
        collect(
            listing,
            source,
            folder,
            dataset=name,
            checks=settings.to(Checks),
            limit=section.limit,
            reporter=report,
            join_copies=name == "table",
        )
