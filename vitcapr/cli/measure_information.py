"""What training changes in the features of pictures and captions: entropy and mutual information, in bits."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.artefacts.embeddings import Embeddings, read_embeddings
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.metrics import write_metrics
from vitcapr.cli.parts.options import EmbeddedSplit, Log, ManifestFile, MetricsOutput, ModelName
from vitcapr.cli.parts.stage import launch
from vitcapr.errors import UserError
from vitcapr.metrics import information
from vitcapr.metrics.report import plain_score
from vitcapr.metrics.retrieval_files import check_pool
from vitcapr.progress import Reporter

_SEED = 0
PROTOCOL = (
    f"entropy:{information.BINS} equal bins a feature, mean over features|spectral:of the covariance"
    f"|match information:similarity against true or wrong, one of each a query, {information.BINS} quantile bins, "
    f"Miller-Madow|shared information:KSG, k={information.NEIGHBOURS}, {information.COMPONENTS} principal components a "
    f"side, at most {information.POINTS} pairs"
)


def main(
    before: Annotated[Path, typer.Option(help="embeddings.npz of the untrained model")],
    after: Annotated[Path, typer.Option(help="embeddings.npz of the trained model")],
    manifest: ManifestFile,
    split: EmbeddedSplit,
    output: MetricsOutput,
    model: ModelName = "",
    log: Log = None,
) -> None:
    """Measure both embeddings of a split; the names of the first end in _before."""
    data = read_manifest(manifest)
    metrics: dict[str, float] = {}
    with Reporter(log) as reporter:
        for path, ending in ((before, "_before"), (after, "")):
            found = read_embeddings(path)
            check_pool(found, data, split, path)
            if len(found.images) <= information.NEIGHBOURS:
                raise UserError(f"{len(found.images)} pictures are too few to measure what features share", where=path)
            metrics |= {f"{name}{ending}": value for name, value in _measured(found).items()}
        for name in [name for name in metrics if not name.endswith("_before")]:
            reporter.line(f"measure_information: {name} {metrics[f'{name}_before']:.3f} -> {metrics[name]:.3f} bits")
        write_metrics(
            output,
            dataset=data.dataset,
            split=split,
            model=model,
            decoding="",
            metrics={name: plain_score(value, len(data.rows(split))) for name, value in metrics.items()},
            protocol=f"{PROTOCOL}|split:{split}",
        )


def _measured(found: Embeddings) -> dict[str, float]:
    """Of each caption one wrong picture, and of each picture one of its captions and a wrong one, are drawn."""
    generator = np.random.default_rng(_SEED)
    images, captions, owner = found.images, found.captions, found.caption_image.astype(np.int64)
    strangers = (owner + generator.integers(1, len(images), len(owner))) % len(images)
    own = np.array([generator.choice(np.flatnonzero(owner == image)) for image in np.unique(owner)])
    asked = owner[own]
    foreign = generator.integers(0, len(owner), len(own))
    foreign = np.where(owner[foreign] == asked, (foreign + 1) % len(owner), foreign)
    foreign, kept = foreign[owner[foreign] != asked], owner[foreign] != asked
    true = np.einsum("ne,ne->n", images[asked], captions[own])
    return {
        "image_entropy": information.histogram_entropy(images),
        "caption_entropy": information.histogram_entropy(captions),
        "image_spectral_entropy": information.spectral_entropy(images),
        "caption_spectral_entropy": information.spectral_entropy(captions),
        "image_match_information": information.match_information(
            true, np.einsum("ne,ne->n", images[asked[kept]], captions[foreign])
        ),
        "caption_match_information": information.match_information(
            np.einsum("ne,ne->n", captions, images[owner]), np.einsum("ne,ne->n", captions, images[strangers])
        ),
        "shared_information": information.shared_information(images[asked], captions[own]),
    }


if __name__ == "__main__":
    launch(main)
