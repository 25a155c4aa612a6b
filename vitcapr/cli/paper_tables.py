"""A paper's numbers, this build's and the literature's, side by side: Markdown, CSV and LaTeX."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.summary import read_summary
from vitcapr.cli.parts.named import parse_named
from vitcapr.cli.parts.options import Log
from vitcapr.cli.parts.stage import launch
from vitcapr.metrics.paper_tables import paper_tables, write_paper_tables
from vitcapr.progress import Reporter


def main(
    summary: Annotated[Path, typer.Argument(help="summary.csv of one experiment, or of all")],
    output_dir: Annotated[Path, typer.Option(help="Receives three files a table, and PAPER.md, .tex and .csv")],
    paper: Annotated[str, typer.Option(help="Whose numbers: vitcap-r, blip2-flickr30k or bert-vit")] = "vitcap-r",
    comparison: Annotated[
        list[Path] | None, typer.Option(help="comparison.json of two scored systems; repeat the option for more")
    ] = None,
    card: Annotated[
        list[Path] | None, typer.Option(help="card.json of a captioner or a retriever; repeat the option for more")
    ] = None,
    ranks: Annotated[
        list[Path] | None, typer.Option(help="RETRIEVER/SPLIT/ranks.npz; repeat the option for more")
    ] = None,
    training: Annotated[
        list[str] | None, typer.Option(help="MODEL=SYSTEM of a model that is one seed of a system; repeat for more")
    ] = None,
    log: Log = None,
) -> None:
    """Set the paper's numbers, this build's and the literature's side by side.

    Rows are matched by name. For vitcap-r: the captioners ``baseline`` and ``patch_attention`` under the decodings
    ``greedy``, ``beam`` and ``reranked``, and the retrievers ``paper`` and ``paper_hard_negatives``. For
    blip2-flickr30k: the retrievers ``raw``, ``linear`` and ``mlp``. For bert-vit: the matcher ``fine_tuned`` and the
    retriever ``devise``. What has another name is a row of its own.
    """
    tables = paper_tables(
        paper,
        read_summary(summary),
        systems={model: str(system) for model, system in parse_named(training or [], "--training").items()},
        comparisons=comparison or [],
        cards=card or [],
        ranks=ranks or [],
    )
    write_paper_tables(output_dir, paper, tables)
    with Reporter(log) as reporter:
        reporter.line(f"paper_tables: {len(tables)} tables beside {paper} in {output_dir}")


if __name__ == "__main__":
    launch(main)
