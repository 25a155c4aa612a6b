"""The choice of a retriever's weight in reranking, on the validation split."""

from pathlib import Path

import numpy as np

from vitcapr.config.captioner import WeighingConfig
from vitcapr.config.parts import Reranker
from vitcapr.formats.embeddings import RerankingWeight
from vitcapr.formats.manifest import Manifest
from vitcapr.metrics.candidates import CandidateScores, tokenize_candidates
from vitcapr.metrics.caption_metric import references_of
from vitcapr.metrics.java import tokenizer_name
from vitcapr.progress import Reporter
from vitcapr.retrieval.n_best import Terms, choose_weight, read_n_best
from vitcapr.retrieval.reranking import RetrieverFiles, blind_likelihoods

SPLIT = "validation"
"""The split that chooses a weight; nothing is tuned on another."""
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The exponents of the blind likelihood to try with each weight."""


def tune_weight(
    captions: Path,
    data: Manifest,
    retriever: RetrieverFiles,
    scorer: Reranker,
    weighing: WeighingConfig,
    reporter: Reporter,
    *,
    language: str,
    device: str,
) -> RerankingWeight:
    """Return the weight whose choice among the candidates of the validation split scores best.

    Args:
        captions: ``captions.json`` of that split, with candidates.
        language: of the references.

    Raises:
        UserError: as :func:`read_n_best` and :meth:`RetrieverFiles.scores`.
    """
    references = references_of(data, SPLIT, language)
    n_bests, digest = read_n_best(captions, list(references)), retriever.digest
    count = sum(len(n_best.candidates) for n_best in n_bests)
    reporter.line(f"tune_reranking: {count} candidates of {len(n_bests)} images by CIDEr")
    candidates = {n_best.image_id: n_best.captions for n_best in n_bests}
    words, reference_words = tokenize_candidates(candidates, references, language)
    scores = CandidateScores(words, reference_words)
    cosines = retriever.scores(scorer, n_bests, data, device, reporter)
    judge = None if weighing.language_model is None else weighing.language_model.canonical()
    blind = None if judge is None else blind_likelihoods(**judge, n_bests=n_bests, device=device)
    curve: list[dict[str, float]] = []
    choices = []
    for alpha in [0.0] if blind is None else ALPHAS:
        terms = Terms(n_bests, cosines, weighing.length_penalty, blind, alpha)
        weight, points = choose_weight(terms, scores.of_choice, weighing.grid_steps, weighing.tolerance)
        curve += [point if blind is None else {"alpha": alpha, **point} for point in points]
        choices.append((next(point["cider"] for point in points if point["weight"] == weight), alpha, weight))
    best, alpha, weight = max(choices, key=lambda choice: choice[0])  # Of equals the first, the smallest alpha.
    first = scores.of_choice(np.zeros(len(n_bests), int))
    how = f"weight {weight:g}" if blind is None else f"weight {weight:g}, alpha {alpha:g}"
    reporter.line(f"tune_reranking: {how}, cider {100 * best:.1f}; {100 * first:.1f} as decoded")
    tokens = tokenizer_name(language)
    tolerated = f"|tolerance:{weighing.tolerance:g}" if weighing.tolerance else ""
    return RerankingWeight(
        weight=weight,
        length_penalty=weighing.length_penalty,
        decoded=round(first, 6),
        curve=curve,
        retriever=digest,
        alpha=alpha,
        language_model=judge,
        protocol=f"tok:{tokens}|images:{len(n_bests)}|split:{SPLIT}|candidates:{count}|tuned on:{SPLIT}{tolerated}",
    )
