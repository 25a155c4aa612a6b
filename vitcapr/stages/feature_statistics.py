from typing import Annotated

from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def feature_statistics(
    sealed: dict[str, In[kinds.SealedFile]],
    report: Reporter,
    statistics: Annotated[Out[kinds.TableFile], "statistics.json: all numbers"],
    table: Annotated[list[Out[kinds.TableFile]], "feature_statistics.md and .html: the main numbers"],
) -> None:
    """Compute moments, spectrum, dead dimensions, vector lengths and near duplicates of feature stores."""
    import os

    import dask
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from vitcapr.files import write_json
    from vitcapr.formats.page import write_page
    from vitcapr.formats.tables import to_page
    from vitcapr.store.reader import open_features
    from vitcapr.store.statistics import statistics as statistics_of
    from vitcapr.store.statistics import statistics_tables

    found = {}
    workers = int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1)
    with dask.config.set(scheduler="threads", num_workers=workers), threadpool_limits(limits=1):
        for name, path in sealed.items():
            with open_features(path) as store:
                found[name] = {array: statistics_of(store, array) for array in store}
            report.line(f"{name}: {', '.join(found[name])}")
    write_json(statistics, found)
    write_page(table, to_page(statistics_tables(found), "Feature stores"))
