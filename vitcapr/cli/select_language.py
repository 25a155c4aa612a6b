"""The embeddings of one language's captions and of the images that they are of, out of those of several languages."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.arrays import write_arrays
from vitcapr.cli.parts.options import EmbeddingsOutput, Log, ManifestFile
from vitcapr.cli.parts.stage import launch
from vitcapr.data.manifest import read_manifest
from vitcapr.errors import UserError
from vitcapr.metrics.retrieval_files import read_embeddings
from vitcapr.progress import Reporter


def main(
    embeddings: Annotated[Path, typer.Option(help="embeddings.npz of a split, of several languages")],
    manifest: ManifestFile,
    language: Annotated[str, typer.Option(help="The language to keep, as in captions.parquet")],
    output: EmbeddingsOutput,
    log: Log = None,
) -> None:
    """Keep the captions of one language and the images that have one, so that the language is scored apart."""
    found = read_embeddings(embeddings)
    spoken = read_manifest(manifest).captions["language"].to_numpy()[found.caption_row]
    kept = spoken == language
    if not kept.any():
        raise UserError(f"no caption in '{language}' was embedded", where=embeddings)
    images, owner = np.unique(found.caption_image[kept], return_inverse=True)
    arrays = {
        "images": found.images[images],
        "captions": found.captions[kept],
        "image_row": found.image_row[images],
        "caption_row": found.caption_row[kept],
        "caption_image": owner.astype(np.int32),
    }
    write_arrays(output, arrays)
    with Reporter(log) as reporter:
        reporter.line(
            f"select_language: {kept.sum()} of {len(kept)} captions, of {len(images)} of {len(found.images)} images, "
            f"are in {language}"
        )


if __name__ == "__main__":
    launch(main)
