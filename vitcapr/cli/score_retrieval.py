"""Retrieval in both directions: Recall@K, ranks, mAP@R, each with its interval, and the ranks themselves."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.embeddings import read_embeddings
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.metrics import Score, write_metrics
from vitcapr.artefacts.ranks import RankFile
from vitcapr.cli.parts.options import (
    BankWeight,
    CorrectedBy,
    EmbeddedSplit,
    Log,
    ManifestFile,
    MetricsOutput,
    ModelName,
    RanksOutput,
    Settings,
)
from vitcapr.cli.parts.query_bank import scored_with
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.retrieval_metrics import RetrievalScoreSettings
from vitcapr.metrics import retrieval
from vitcapr.metrics.ranks import Truth, rank_matches
from vitcapr.metrics.report import interval_protocol, plain_score
from vitcapr.metrics.retrieval_files import check_pool
from vitcapr.metrics.retrieval_report import pool_protocol, retrieval_scores
from vitcapr.progress import Reporter


def main(
    embeddings: Annotated[Path, typer.Option(help="embeddings.npz of the split")],
    manifest: ManifestFile,
    split: EmbeddedSplit,
    output: MetricsOutput,
    ranks: RanksOutput,
    query_bank: CorrectedBy = None,
    weight: BankWeight = None,
    model: ModelName = "",
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Rank all captions of a split for each of its images and all its images for each caption."""
    chosen = parse_settings(RetrievalScoreSettings, settings).metrics
    samples, seed = chosen.bootstrap_samples, chosen.bootstrap_seed
    data = read_manifest(manifest)
    embedded = read_embeddings(embeddings)
    languages = check_pool(embedded, data, split, embeddings)
    found, correction = scored_with(embedded, query_bank, weight)
    truth = Truth.of(found.caption_image, len(found.images))

    with Reporter(log) as reporter:
        with reporter.track("score_retrieval", len(found.images) * len(found.captions), "scores") as tracker:
            ranked = rank_matches(found.images, found.captions, truth.caption_image, tracker.advance)
        folds = retrieval.rank_folds(found.images, found.captions, truth)
        report = retrieval_scores(ranked, truth, folds, samples, seed)
        for side, vectors in (("image", embedded.images), ("caption", embedded.captions)):
            report[f"{side}_variance"] = plain_score(retrieval.variance(vectors, side), len(found.images))
        files = RankFile(ranked, found.image_row, found.caption_row, found.caption_image)
        files.write(ranks)
        write_metrics(
            output,
            dataset=data.dataset,
            split=split,
            model=model,
            decoding="",
            metrics=report,
            protocol="|".join(
                [*pool_protocol(truth, split, languages), *correction, *interval_protocol(samples, seed)]
            ),
        )
        for direction, query in (("i2t", "image to text"), ("t2i", "text to image")):
            recalls = " / ".join(f"{100 * _value(report[f'{direction}_recall_{depth}']):.1f}" for depth in (1, 5, 10))
            median = _value(report[f"{direction}_median_rank"])
            reporter.line(f"score_retrieval: {query}: R@1/5/10 {recalls}, median rank {median:g}")


def _value(score: Score) -> float:
    value = score["value"]
    return float("nan") if value is None else value


if __name__ == "__main__":
    launch(main)
