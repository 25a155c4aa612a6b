from typing import Annotated

from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def export_features(
    sealed: In[kinds.SealedFile],
    file_format: Annotated[str, "h5 or npz"],
    report: Reporter,
    exported: Out[kinds.ExportedFile],
) -> None:
    """Write all arrays, ids and attributes of a feature store to one HDF5 or NPZ file."""
    from vitcapr.store.export import to_h5, to_npz
    from vitcapr.store.reader import open_features

    writers = {"h5": to_h5, "npz": to_npz}
    if file_format not in writers:
        raise UserError(f"no format '{file_format}'", remedy=f"the formats are {' and '.join(writers)}")
    with open_features(sealed) as store:
        rows = sum(len(array) for array in store.values())
        with report.track("export_features", rows, "rows") as tracker:
            writers[file_format](store, exported, tracker.advance)
