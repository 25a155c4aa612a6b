"""The weight of a retriever in reranking, chosen on the validation split."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.weight import RerankingWeight
from vitcapr.building.cosines import digest_of, split_cosines
from vitcapr.cli.parts.options import (
    Log,
    ManifestFile,
    RetrieverFeatures,
    RetrieverFolder,
    RetrieverTextEncoder,
    RetrieverVocabulary,
    Settings,
    Views,
    WeightOutput,
)
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.reranking import TuneRerankingSettings
from vitcapr.decoding.rerank import Terms, choose_weight, read_n_best, weights
from vitcapr.metrics.bootstrap import Measure
from vitcapr.metrics.candidates import CandidateScores
from vitcapr.metrics.caption_metric import TokenisedCaptions
from vitcapr.metrics.captions.cider import cider
from vitcapr.metrics.captions.meteor import meteor_by_java
from vitcapr.metrics.inputs import Caption
from vitcapr.metrics.references import references_of, tokenize_all
from vitcapr.progress import Reporter

SPLIT = "validation"
"""Nothing is tuned on another."""


def main(
    captions: Annotated[Path, typer.Option(help="captions.json of the validation split, with candidates")],
    features: RetrieverFeatures,
    manifest: ManifestFile,
    vocabulary: RetrieverVocabulary,
    retriever: RetrieverFolder,
    output: WeightOutput,
    view: Views = None,
    text_encoder: RetrieverTextEncoder = None,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Choose the weight of a retriever in reranking, on the validation split."""
    chosen = parse_settings(TuneRerankingSettings, settings)
    weighing, timeout = chosen.weighing, chosen.metrics.scorer_timeout
    data = read_manifest(manifest)
    references = references_of(data, SPLIT, chosen.language)
    found = read_n_best(captions, list(references))
    digest = digest_of(retriever)
    with Reporter(log) as reporter:
        flat = [Caption(n_best.image_id, caption) for n_best in found for caption in n_best.captions]
        reporter.line(f"tune_reranking: {len(flat)} candidates of {len(found)} images by {weighing.select_by}")
        words, reference_words = tokenize_all(flat, references, timeout)
        rest = iter(words)
        candidate_words = [[next(rest) for _ in n_best.candidates] for n_best in found]
        candidate_scores = CandidateScores(candidate_words, _scorer(weighing.select_by, reference_words, timeout))
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
        terms = Terms(found, cosines, weighing.length_penalty)
        weight, curve = choose_weight(
            terms, candidate_scores.of_choice, weighing.select_by, weights(weighing.grid_steps)
        )
        first = candidate_scores.of_choice(terms.decoded)
        result = RerankingWeight(
            weight=weight,
            length_penalty=weighing.length_penalty,
            select_by=weighing.select_by,
            decoded=round(first, 6),
            curve=curve,
            retriever=digest,
            protocol=f"tok:ptb|images:{len(found)}|split:{SPLIT}|candidates:{len(flat)}|tuned on:{SPLIT}",
        )
        result.write(output)
        best = max(point[weighing.select_by] for point in curve)
        reporter.line(f"tune_reranking: weight {weight:g}, {weighing.select_by} {best:.4f}; {first:.4f} as decoded")


def _scorer(name: str, references: Mapping[str, Sequence[str]], timeout: float) -> Callable[[Sequence[str]], Measure]:
    """The measure of one tokenised caption an image, by its name."""
    if name == "meteor":
        return lambda words: meteor_by_java(TokenisedCaptions(words, references, timeout=timeout))
    return lambda words: cider(words, list(references.values()))


if __name__ == "__main__":
    launch(main)
