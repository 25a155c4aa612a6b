"""Check that every task's chunks stand and write the manifest that seals the feature store."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Log, ManifestFile, SealedOutput, Stores
from vitcapr.cli.parts.stage import launch
from vitcapr.features.store.seal import seal
from vitcapr.progress import Reporter


def main(
    parts: Annotated[list[Path], typer.Argument(help="part.json of every task.")],
    manifest: ManifestFile,
    stores: Stores,
    output: SealedOutput,
    log: Log = None,
) -> None:
    """Seal a feature store."""
    with Reporter(log) as reporter:
        data = read_manifest(manifest)
        sealed = seal(parts, stores, data.images["image_id"].tolist(), output)
        arrays = [f"{name} {' x '.join(map(str, array['shape']))}" for name, array in sealed["arrays"].items()]
        reporter.line(f"sealed {', '.join(arrays)}, store {sealed['store']}")


if __name__ == "__main__":
    launch(main)
