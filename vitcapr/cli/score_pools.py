"""Recall@K of queries set apart against pools of candidates, in both directions."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.artefacts.embeddings import read_embeddings
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.metrics import write_metrics
from vitcapr.artefacts.pools import read_pools
from vitcapr.cli.parts.options import BankWeight, CorrectedBy, Log, ManifestFile, MetricsOutput, ModelName, Settings
from vitcapr.cli.parts.query_bank import scored_with
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.retrieval_metrics import RetrievalScoreSettings
from vitcapr.metrics.pools import rank_pools
from vitcapr.metrics.report import interval_protocol, plain_score, score_of
from vitcapr.metrics.retrieval import DEPTHS
from vitcapr.metrics.retrieval_files import check_pool
from vitcapr.progress import Reporter

SPLIT = "test"
"""What queries and candidates are drawn from."""


def main(
    embeddings: Annotated[Path, typer.Option(help="embeddings.npz of the test split")],
    manifest: ManifestFile,
    pools: Annotated[Path, typer.Option(help="pools.npz: the queries and what they are ranked against")],
    output: MetricsOutput,
    query_bank: CorrectedBy = None,
    weight: BankWeight = None,
    model: ModelName = "",
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Rank the candidate texts for each query image and the candidate images for each query text."""
    chosen = parse_settings(RetrievalScoreSettings, settings).metrics
    samples, seed = chosen.bootstrap_samples, chosen.bootstrap_seed
    data, found = read_manifest(manifest), read_embeddings(embeddings)
    languages = check_pool(found, data, SPLIT, embeddings)
    found, correction = scored_with(found, query_bank, weight)
    ranked = rank_pools(found, read_pools(pools))
    report = {name: score_of(measure, samples, seed) for name, measure in ranked.measures().items()}
    report["i2t_median_rank"] = plain_score(float(np.median(ranked.i2t)), len(ranked.i2t))
    # As everywhere, n counts images: here those that the query texts are of.
    report["t2i_median_rank"] = plain_score(float(np.median(ranked.t2i)), len(np.unique(ranked.picture)))
    protocol = [
        f"i2t:{len(ranked.i2t)}images of {ranked.texts}captions,any own caption",
        f"t2i:{len(ranked.t2i)}captions of {ranked.images}images",
        *("ties:pessimistic", "scores:float32", f"split:{SPLIT}", f"lang:{'+'.join(languages)}"),
        *correction,
        *interval_protocol(samples, seed),
    ]
    write_metrics(
        output,
        dataset=data.dataset,
        split="pools",
        model=model,
        decoding="",
        metrics=report,
        protocol="|".join(protocol),
    )
    with Reporter(log) as reporter:
        for name, ranks, pool in (("i2t", ranked.i2t, ranked.texts), ("t2i", ranked.t2i, ranked.images)):
            shown = " / ".join(f"{100 * float(np.mean(ranks <= depth)):.1f}" for depth in DEPTHS)
            reporter.line(f"score_pools: {name}: R@1/5/10 {shown}, {len(ranks):,} queries among {pool:,} candidates")


if __name__ == "__main__":
    launch(main)
