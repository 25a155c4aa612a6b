"""The ceiling of a reranking: the candidates of a split in the order that its references would give them."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Candidates, CaptionedSplit, Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.metrics import ScoreSettings
from vitcapr.decoding.rerank import read_n_best, write_reordered
from vitcapr.metrics import oracle
from vitcapr.metrics.candidates import CandidateScores
from vitcapr.metrics.captions.cider import cider
from vitcapr.metrics.inputs import Caption
from vitcapr.metrics.references import references_of, tokenize_all
from vitcapr.progress import Reporter


def main(
    captions: Candidates,
    manifest: ManifestFile,
    split: CaptionedSplit,
    output: Annotated[Path, typer.Option(help="captions.json to write, every entry marked as the oracle's")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Put the candidate first that the references like best: the ceiling of any reranking, and no result.

    The references that choose are those that score, so the scores of these captions say only how much a perfect
    reranking of the same candidates could gain.
    """
    chosen = parse_settings(ScoreSettings, settings)
    data = read_manifest(manifest)
    references = references_of(data, split, chosen.language)
    found = read_n_best(captions, list(references))
    with Reporter(log) as reporter:
        flat = [Caption(n_best.image_id, caption) for n_best in found for caption in n_best.captions]
        words, reference_words = tokenize_all(flat, references, chosen.metrics.scorer_timeout)
        rest = iter(words)
        candidate_words = [[next(rest) for _ in n_best.candidates] for n_best in found]
        others = list(reference_words.values())
        ciders = CandidateScores(candidate_words, lambda texts: cider(texts, others)).per_candidate
        write_reordered(output, found, ciders, oracle=oracle.CHOSEN_BY)
        changed = sum(int(np.argmax(of_image) != 0) for of_image in ciders)
        reporter.line(
            f"rerank_oracle: a ceiling, no result; the references prefer another caption for {changed} of "
            f"{len(found)} images"
        )


if __name__ == "__main__":
    launch(main)
