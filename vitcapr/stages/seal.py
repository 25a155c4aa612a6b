from pathlib import Path

from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, StoreRoot, stage
from vitcapr.progress import Reporter


@stage(execution_only={"stores"})
def seal(
    manifest: In[kinds.ManifestFile],
    parts: list[In[kinds.PartFile]],
    stores: StoreRoot,
    report: Reporter,
    sealed: Out[kinds.FeaturesFile],
) -> None:
    """Check that the chunks of every task exist, and write the manifest that seals the feature store."""
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.store.layout import Rows
    from vitcapr.store.seal import seal as seal_parts

    written = seal_parts(parts, Path(stores), Rows.of_images(read_manifest(manifest)), sealed)
    arrays = [f"{name} {' x '.join(map(str, array['shape']))}" for name, array in written["arrays"].items()]
    report.line(f"sealed {', '.join(arrays)}, store {written['store']}")
