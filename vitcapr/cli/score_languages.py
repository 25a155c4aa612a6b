"""Retrieval across languages: captions in one find captions of the same picture in another."""

from itertools import permutations
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.artefacts.embeddings import read_embeddings
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.metrics import Score, write_metrics
from vitcapr.cli.parts.options import EmbeddedSplit, Log, ManifestFile, MetricsOutput, ModelName, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.retrieval_metrics import RetrievalScoreSettings
from vitcapr.errors import UserError
from vitcapr.metrics.bootstrap import ratio_measure
from vitcapr.metrics.languages import CrossRanks, cross_ranks
from vitcapr.metrics.report import plain_score, score_of
from vitcapr.metrics.retrieval import DEPTHS
from vitcapr.metrics.retrieval_files import check_pool
from vitcapr.progress import Reporter


def main(
    embeddings: Annotated[Path, typer.Option(help="embeddings.npz of the split, of two languages or more")],
    manifest: ManifestFile,
    split: EmbeddedSplit,
    output: MetricsOutput,
    model: ModelName = "",
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Rank the captions of each language for each caption of every other."""
    chosen = parse_settings(RetrievalScoreSettings, settings).metrics
    data, found = read_manifest(manifest), read_embeddings(embeddings)
    languages = check_pool(found, data, split, embeddings)
    if len(languages) < 2:
        raise UserError("captions of one language only were embedded", where=embeddings)
    spoken = data.captions["language"].to_numpy()[found.caption_row]
    report: dict[str, Score] = {}
    pools = []
    with Reporter(log) as reporter:
        for asked, answering in permutations(languages, 2):
            a, b = spoken == asked, spoken == answering
            ranked = cross_ranks(found.captions[a], found.caption_image[a], found.captions[b], found.caption_image[b])
            if not len(ranked.ranks):
                continue
            name = f"{asked}_to_{answering}"
            report |= _scores(name, ranked, chosen.bootstrap_samples, chosen.bootstrap_seed)
            pools.append(f"{name}:{len(ranked.ranks)}of{ranked.pool}captions")
            shown = " / ".join(f"{100 * float(np.mean(ranked.ranks <= depth)):.1f}" for depth in DEPTHS)
            reporter.line(f"score_languages: {name}: R@1/5/10 {shown} among {ranked.pool} captions")
        write_metrics(
            output,
            dataset=data.dataset,
            split=split,
            model=model,
            decoding="",
            metrics=report,
            protocol="|".join([*pools, "hit:any caption of the picture", "ties:pessimistic", f"split:{split}"]),
        )


def _scores(name: str, ranked: CrossRanks, samples: int, seed: int) -> dict[str, Score]:
    """Recall and the median rank; resampling takes pictures with all their captions."""
    _, place = np.unique(ranked.picture, return_inverse=True)
    counts = np.bincount(place)
    scores = {
        f"{name}_recall_{depth}": score_of(
            ratio_measure(np.bincount(place, weights=ranked.ranks <= depth), counts), samples, seed
        )
        for depth in DEPTHS
    }
    return scores | {f"{name}_median_rank": plain_score(float(np.median(ranked.ranks)), len(ranked.ranks))}


if __name__ == "__main__":
    launch(main)
