"""Take a sealed store that was pulled or imported as the features of an experiment: nothing is computed."""

import os
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Log, ManifestFile
from vitcapr.cli.parts.stage import launch
from vitcapr.errors import UserError
from vitcapr.features.store.reader import open_features, read_sealed
from vitcapr.files import write_json
from vitcapr.progress import Reporter


def main(
    store: Annotated[Path, typer.Argument(help="The store's sealed manifest.json.")],
    manifest: ManifestFile,
    output: Annotated[Path, typer.Option(help="The sealed manifest.json of the experiment.")],
    log: Log = None,
) -> None:
    """Seal a store that is there for an experiment with the same images or captions."""
    with Reporter(log) as reporter, open_features(store) as features:
        if features.partial:
            raise UserError("only a part of a store", where=store, remedy="pull all of it with vitcapr features pull")
        data = read_manifest(manifest)
        table = data.images if features.identity == "image_id" else data.captions
        if table[features.identity].tolist() != features.ids:
            remedy = f"import it again with --data {manifest}, which puts its rows in order"
            what = f"the store's {len(features.ids)} rows are not the {len(table)} of the data set, in its order"
            raise UserError(what, where=store, remedy=remedy)
        group = Path(os.path.relpath(features.path, output.parent.resolve())).as_posix()
        write_json(output, {**read_sealed(store), "store": group})
        reporter.line(f"adopted {', '.join(features)} of {features.attributes['backbone']}, store {group}")


if __name__ == "__main__":
    launch(main)
