"""Compare ways to align two stores over the number of training pairs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitcapr.commands.config import described
from vitcapr.commands.main import Log, WithoutContentCheck, split_commas, typer_app
from vitcapr.extensions.alignment.settings import StudyConfig
from vitcapr.progress import print_lines

if TYPE_CHECKING:
    from vitcapr.extensions.alignment.comparison import StudyResult

_HELP = described(StudyConfig)


def main(
    images: Annotated[Path, typer.Argument(help="Sealed manifest.json of image features, or its folder.")],
    texts: Annotated[Path, typer.Argument(help="Sealed manifest.json of text features, or its folder.")],
    output: Annotated[Path, typer.Option(help="Folder for the tables, the scores as CSV and the figure.")],
    view: Annotated[
        list[Path] | None,
        typer.Option(help="Features of another view of the same images, such as mirrored ones. Repeatable."),
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Option(help=f"{_HELP['inputs']} Repeat to compare; cls by default.")
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Parquet or CSV: image_id, caption_id and, if wanted, split, such as captions.parquet of a data set. "
            "Without it a caption belongs to the image that its id names before the last '#'."
        ),
    ] = None,
    families: Annotated[str | None, typer.Option(help=f"{_HELP['families']} Separated by commas.")] = None,
    sizes: Annotated[
        str | None, typer.Option(help=f"{_HELP['sizes']} Separated by commas; 'all' stands for null.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help=_HELP["seeds"])] = 5,
    query_bank: Annotated[bool, typer.Option("--query-bank", help=_HELP["query_bank"])] = False,
    without_content_check: WithoutContentCheck = False,
    log: Log = None,
) -> None:
    """Fit families of alignments to pairs of two stores and compare their recall on test pairs.

    Settings are chosen on the validation pairs. The test pairs are scored once for each fit.
    """
    # A mistake in a path or in a value is found before torch, which takes seconds to load.
    from vitcapr.config.reading import parse
    from vitcapr.store.reader import open_features

    settings = parse(
        StudyConfig,
        {
            "inputs": inputs or ["cls"],
            "families": split_commas(families or ""),
            "sizes": [None if word == "all" else word for word in split_commas(sizes or "")],
            "seeds": seeds,
            "query_bank": query_bank,
        },
        "the options",
    )
    views = [open_features(path) for path in (images, *(view or ()))]
    sentences = open_features(texts)
    from vitcapr.extensions.alignment.comparison import compare_alignments
    from vitcapr.extensions.alignment.pairing import pair_by_file, pair_by_id
    from vitcapr.progress import Reporter

    sentences["text"]  # Another store has no such array, and says so before anything is paired.
    with Reporter(log) as reporter:
        names = views[0].ids, sentences.ids
        pairing = pair_by_file(pairs, *names, seed=0) if pairs else pair_by_id(*names, seed=0)
        compared = compare_alignments(views, sentences, pairing, settings, reporter, not without_content_check)
        _write(compared, output)


def _write(result: "StudyResult", output: Path) -> None:
    """Print the tables; write them as CSV and as a page, and the curve ``recall`` if there is one."""
    from vitcapr.extensions.alignment.alignment_figures import alignment_curve
    from vitcapr.formats.page import write_page
    from vitcapr.formats.terminal import print_listing
    from vitcapr.report.figures.style import save_figure

    tables = ("scores", "differences", "intervals", "similarity", "seconds")
    result.write(**{name: output / f"{name}.csv" for name in tables})
    curve = ""
    if result.scores["pairs"].nunique() > 1:
        figure = alignment_curve(result.scores)
        for suffix in ("pdf", "png"):
            save_figure(figure, output / f"recall.{suffix}")
        curve = "\n![Recall@1 over the number of training pairs](recall.png)\n"
    write_page([output / f"tables.{suffix}" for suffix in ("md", "html")], result.page + curve, home="")
    for table in result.tables:
        print_lines(f"\n{table.title}")
        print_listing(table)
    print_lines(f"\n{result.protocol}")


app = typer_app(main)
