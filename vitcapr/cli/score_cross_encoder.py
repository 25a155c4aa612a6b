"""Retrieval in both directions after a cross-attention reranker: the scores of score_retrieval, and a paired test."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.cli.parts.options import Log, MetricsOutput, ModelName, RanksOutput, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.retrieval_metrics import RetrievalScoreSettings
from vitcapr.errors import UserError
from vitcapr.metrics import retrieval
from vitcapr.metrics.bootstrap import compare
from vitcapr.metrics.ranks import Truth
from vitcapr.metrics.reordered import CrossWeight, Matches, reordered_ranks
from vitcapr.metrics.report import plain_score, read_metrics, score_of, write_metrics
from vitcapr.metrics.retrieval_files import RankFile
from vitcapr.metrics.retrieval_report import median_scores
from vitcapr.progress import Reporter

_COMPARED = ("rsum", "i2t_recall_1", "t2i_recall_1")


def main(
    matches: Annotated[Path, typer.Option(help="matches.npz of the split")],
    before: Annotated[Path, typer.Option(help="ranks.npz of the retriever on the split")],
    before_metrics: Annotated[Path, typer.Option(help="metrics.json of the retriever on the split")],
    weight: Annotated[Path, typer.Option(help="weight.json that was chosen on validation")],
    output: MetricsOutput,
    ranks: RanksOutput,
    model: ModelName = "",
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Put what a retriever found first in a new order, and score it; what it found later keeps its rank."""
    chosen = parse_settings(RetrievalScoreSettings, settings).metrics
    samples, seed = chosen.bootstrap_samples, chosen.bootstrap_seed
    found, old, told = Matches.read(matches), RankFile.read(before), read_metrics(before_metrics)
    if old.caption_row.tolist() != found.caption_row.tolist():
        raise UserError("the ranks are of other captions than the matches", where=before)
    mix = CrossWeight.read(weight).mix
    truth = Truth.of(found.caption_image, len(found.image_row))
    ranked = reordered_ranks(found, old.ranks, mix)
    whole = retrieval.measures(ranked, truth)
    report = {name: score_of(measure, samples, seed) for name, measure in whole.items()}
    report |= median_scores([(ranked, truth)], "", samples, seed)
    report |= {name: plain_score(value, len(found.image_row)) for name, value in retrieval.chance(truth).items()}
    RankFile(ranked, found.image_row, found.caption_row, found.caption_image).write(ranks)
    top = found.image_captions.shape[1]
    # The 1K folds rank other pools than the one whose first matches were matched, so that there are none.
    protocol = "|".join(part for part in told["protocol"].split("|") if not part.startswith("1k:"))
    write_metrics(
        output,
        dataset=told["dataset"],
        split=told["split"],
        model=model,
        decoding="",
        metrics=report,
        protocol=f"{protocol}|rerank:top{top} of {told['model']},weight={mix.weight:g} chosen on validation",
    )
    earlier = old.measures()
    with Reporter(log) as reporter:
        for name in _COMPARED:
            if samples:
                gain = compare(whole[name], earlier[name], samples, seed)
                reporter.line(
                    f"score_cross_encoder: {name} {100 * earlier[name].value:.1f} -> {100 * whole[name].value:.1f}, "
                    f"{100 * gain.difference:+.1f} ({100 * gain.low:+.1f} to {100 * gain.high:+.1f}), "
                    f"p = {gain.p_value:.3f}"
                )


if __name__ == "__main__":
    launch(main)
