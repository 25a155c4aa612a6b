from pathlib import Path
from typing import Annotated

from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, StoreRoot, stage
from vitcapr.progress import Reporter


@stage(execution_only={"stores"}, shares="parts")
def seal(
    manifest: In[kinds.ManifestFile],
    parts: list[In[kinds.PartFile]],
    stores: StoreRoot,
    report: Reporter,
    sealed: Out[kinds.FeaturesFile],
    content_check: Annotated[bool, "Compare the features with the photographs and the captions"] = True,
) -> None:
    """Check that the chunks of every task exist, and write the manifest that seals the feature store."""
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.store.content import check_store_content
    from vitcapr.store.layout import Rows
    from vitcapr.store.reader import open_features
    from vitcapr.store.sealing import seal as seal_parts

    data = read_manifest(manifest)
    written = seal_parts(parts, Path(stores), Rows.of_images(data), sealed)
    with open_features(sealed) as features:
        check_store_content(features, data, content_check, report.line, computed_here=True)
    arrays = [f"{name} {' x '.join(map(str, array['shape']))}" for name, array in written["arrays"].items()]
    report.line(f"sealed {', '.join(arrays)}, store {written['store']}")
