from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def export_features(sealed: In[kinds.SealedFile], report: Reporter, exported: Out[kinds.ExportedFile]) -> None:
    """Write all arrays, ids and attributes of a feature store to one HDF5 file."""
    from vitcapr.store.export import to_h5
    from vitcapr.store.reader import open_features

    with open_features(sealed) as store:
        rows = sum(len(array) for array in store.values())
        with report.track("export_features", rows, "rows") as tracker:
            to_h5(store, exported, tracker.advance)
