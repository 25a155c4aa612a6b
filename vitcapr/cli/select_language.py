"""The embeddings of one language's captions, out of those of several."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.cli.stage import Log, ManifestFile, launch
from vitcapr.data.manifest import read_manifest
from vitcapr.errors import UserError
from vitcapr.files import atomic_path
from vitcapr.metrics.retrieval_files import read_embeddings
from vitcapr.progress import Reporter


def main(
    embeddings: Annotated[Path, typer.Option(help="embeddings.npz of a split, of several languages")],
    manifest: ManifestFile,
    language: Annotated[str, typer.Option(help="The language to keep, as in captions.parquet")],
    output: Annotated[Path, typer.Option(help="embeddings.npz to write")],
    log: Log = None,
) -> None:
    """Keep all images of a split and the captions of one language, so that these are scored apart."""
    found = read_embeddings(embeddings)
    spoken = read_manifest(manifest).captions["language"].to_numpy()[found.caption_row]
    kept = spoken == language
    if not kept.any():
        raise UserError(f"no caption in '{language}' was embedded", where=embeddings)
    captions = ("captions", "caption_row", "caption_image")
    arrays = {name: array[kept] if name in captions else array for name, array in found._asdict().items()}
    with atomic_path(output) as temporary, temporary.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
    with Reporter(log) as reporter:
        reporter.line(f"select_language: {kept.sum()} of {len(kept)} captions are in {language}")


if __name__ == "__main__":
    launch(main)
