"""Choose how much of hubness is taken off a model's scores, on the validation split."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.cli.parts.options import Log, QueryBank, Settings, WeightOutput
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.query_bank import WeighQueryBankSettings
from vitcapr.metrics.query_bank import weigh
from vitcapr.metrics.retrieval_files import read_embeddings
from vitcapr.progress import Reporter


def main(
    embeddings: Annotated[Path, typer.Option(help="embeddings.npz of the validation split")],
    query_bank: QueryBank,
    output: WeightOutput,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Try inverse temperatures, and weights from 0 (the cosine alone) to 1; the best by the sum of recalls is kept."""
    tried = parse_settings(WeighQueryBankSettings, settings).query_bank
    steps = tried.grid_steps
    with Reporter(log) as reporter:
        chosen = weigh(
            read_embeddings(embeddings),
            read_embeddings(query_bank),
            tried.inverse_temperatures,
            [step / steps for step in range(steps + 1)],
        )
        chosen.write(output)
        best = max(row["rsum"] for row in chosen.curve)
        reporter.line(
            f"weigh_query_bank: inverse temperature {chosen.inverse_temperature:g}, weight {chosen.weight:g}, rsum "
            f"{100 * best:.1f} on validation (the cosine alone {100 * chosen.curve[0]['rsum']:.1f})"
        )


if __name__ == "__main__":
    launch(main)
