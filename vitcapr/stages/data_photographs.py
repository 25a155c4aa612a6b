from typing import Annotated

from vitcapr.config.base import find_data
from vitcapr.config.data import PhotographsSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter


@stage(execution_only={"max_rejected", "needed_splits"})
def data_photographs(
    settings: PhotographsSettings,
    report: Reporter,
    folder: Out[kinds.DataFolder],
    needed_splits: Annotated[dict[str, str] | None, "Splits that later stages read, and what needs them"] = None,
) -> None:
    """Check the photographs and captions of Flickr8k, Flickr30k, COCO or the user and write their manifest."""
    from vitcapr.data.collect import Checks, collect
    from vitcapr.data.readers import leave_out, list_data_set

    name, section = settings.dataset
    with list_data_set(name, **section.keys()) as (source, listing):
        if settings.leave_out:
            listing = leave_out(listing, find_data(settings.leave_out), settings.leave_out_above)
        collect(
            listing,
            source,
            folder,
            dataset=name,
            checks=settings.to(Checks),
            limit=section.limit,
            reporter=report,
            join_copies=name == "table",
            needed_splits=needed_splits,
        )
