"""Choose the weight of a cross-attention reranker against the retriever's cosine, on the validation split."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.cli.parts.options import Log, Settings, WeightOutput
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.cross_encoder import WeighCrossEncoderSettings
from vitcapr.metrics.reordered import CrossWeight, Matches, Mix, reordered_ranks
from vitcapr.metrics.retrieval_files import RankFile
from vitcapr.progress import Reporter


def main(
    matches: Annotated[Path, typer.Option(help="matches.npz of the validation split")],
    ranks: Annotated[Path, typer.Option(help="ranks.npz of the retriever on the validation split")],
    output: WeightOutput,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Try weights from 0 (the retriever alone) to 1 (the reranker alone); the best by the sum of recalls is kept.

    Of equally good weights the smallest is kept.
    """
    steps = parse_settings(WeighCrossEncoderSettings, settings).grid_steps
    found, before = Matches.read(matches), RankFile.read(ranks)
    scales = [
        float(np.concatenate([one.ravel(), other.ravel()]).astype(np.float64).std()) or 1.0
        for one, other in (
            (found.image_cosines, found.caption_cosines),
            (found.image_logits, found.caption_logits),
        )
    ]
    curve = []
    for step in range(steps + 1):
        mix = Mix(step / steps, *scales)
        after = RankFile(
            reordered_ranks(found, before.ranks, mix), before.image_row, before.caption_row, before.caption_image
        )
        measured = after.measures()
        curve.append({"weight": mix.weight, **{name: round(measured[name].value, 6) for name in _SHOWN}})
    best = max(curve, key=lambda row: row["rsum"])
    CrossWeight(
        weight=best["weight"],
        cosine_scale=round(scales[0], 8),
        logit_scale=round(scales[1], 8),
        chosen_by="rsum on validation",
        curve=curve,
    ).write(output)
    with Reporter(log) as reporter:
        reporter.line(
            f"weigh_cross_encoder: weight {best['weight']:g}, rsum {100 * best['rsum']:.1f} on validation "
            f"(retriever alone {100 * curve[0]['rsum']:.1f}, reranker alone {100 * curve[-1]['rsum']:.1f})"
        )


_SHOWN = ("rsum", "i2t_recall_1", "t2i_recall_1")


if __name__ == "__main__":
    launch(main)
