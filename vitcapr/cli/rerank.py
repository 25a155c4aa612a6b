"""Captions of a split in a new order: likelihood and a retriever's cosine together."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.weight import RerankingWeight
from vitcapr.building.cosines import digest_of, split_cosines
from vitcapr.cli.parts.options import (
    Candidates,
    CaptionedSplit,
    CaptionsOutput,
    Log,
    ManifestFile,
    RetrieverFeatures,
    RetrieverTextEncoder,
    RetrieverVocabulary,
    Settings,
    Views,
)
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.reranking import RerankSettings
from vitcapr.decoding.rerank import Terms, read_n_best, write_reordered
from vitcapr.errors import UserError
from vitcapr.progress import Reporter


def main(
    captions: Candidates,
    weight: Annotated[Path, typer.Option(help="weight.json of tune_reranking")],
    features: RetrieverFeatures,
    manifest: ManifestFile,
    vocabulary: RetrieverVocabulary,
    retriever: Annotated[Path, typer.Option(help="Folder of the retriever the weight was chosen for")],
    split: CaptionedSplit,
    output: CaptionsOutput,
    view: Views = None,
    text_encoder: RetrieverTextEncoder = None,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Reorder the candidates of every image of a split."""
    chosen = parse_settings(RerankSettings, settings)
    tuned = RerankingWeight.read(weight)
    if tuned.retriever != digest_of(retriever):
        raise UserError(
            f"the weight in {weight} was chosen for another retriever",
            where=retriever,
            remedy="run tune_reranking again",
        )
    data = read_manifest(manifest)
    found = read_n_best(captions, data.images["image_id"].iloc[data.rows(split)].tolist())
    with Reporter(log) as reporter:
        cosines = split_cosines(
            found,
            data,
            features=features,
            views=view,
            vocabulary=vocabulary,
            retriever=retriever,
            text_encoder=text_encoder,
            device=chosen.device,
            reporter=reporter,
        )
        terms = Terms(found, cosines, tuned.length_penalty)
        write_reordered(
            output,
            found,
            list(terms.scores(tuned.weight)),
            of_candidates=[{"cosine": of_image} for of_image in cosines],
        )
        changed = int(np.count_nonzero(terms.best(tuned.weight)))
        reporter.line(f"rerank: weight {tuned.weight:g}, another caption for {changed} of {len(found)} images")


if __name__ == "__main__":
    launch(main)
