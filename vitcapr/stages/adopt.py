from typing import Annotated

from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def adopt(
    manifest: In[kinds.ManifestFile],
    store: In[kinds.StoreFile],
    report: Reporter,
    sealed: Out[kinds.FeaturesFile],
    content_check: Annotated[bool, "Compare the features with the photographs and the captions"] = True,
) -> None:
    """Seal a pulled or imported store for an experiment with the same images or captions. Nothing is computed."""
    import os
    import re
    from pathlib import Path

    from vitcapr.files import write_json
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.store_manifest import read_sealed
    from vitcapr.store.content import check_store_content
    from vitcapr.store.reader import open_features

    with open_features(store) as features:
        if features.partial:
            raise UserError("the store is incomplete", where=store, remedy="pull all of it with vitcapr features pull")
        name = store.parent.name
        if re.fullmatch("[0-9a-f]{16}", name) and not features.fingerprint.startswith(name):
            what = f"the store is named {name}, and its fingerprint is {features.fingerprint}"
            raise UserError(what, where=store, remedy="give the store with this digest, or name it otherwise")
        data = read_manifest(manifest)
        features.check_rows(features.identity, data)
        check_store_content(features, data, content_check, report.line)
        group = Path(os.path.relpath(features.path, sealed.parent.resolve())).as_posix()
        write_json(sealed, {**read_sealed(store), "store": group})
        report.line(f"adopted {', '.join(features)} of {features.attributes.get('backbone', 'unknown')}, store {group}")
