"""Ask whether a retriever prefers true captions to foils."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitcapr.commands.main import typed
from vitcapr.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

    from vitcapr.studies.compositional import Scorer


def main(
    pairs: Annotated[
        list[Path], typer.Argument(help="JSON of SugarCrepe's form: filename, caption, negative_caption; a split each.")
    ],
    photographs: Annotated[Path | None, typer.Option(help="Folder of the photographs, for --retriever.")] = None,
    retriever: Annotated[list[Path] | None, typer.Option(help="Folder of a trained retriever. Repeatable.")] = None,
    blind: Annotated[
        str | None, typer.Option(help="Causal language model that sees no image: a hub id or a folder.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, help="Bootstrap samples for the intervals; 0 for none.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    output: Annotated[Path | None, typer.Option(help="Folder for accuracy.csv and the figure.")] = None,
) -> None:
    """The share of pairs whose caption scores higher than its foil, by split, with 95 % intervals over the images.

    With --photographs, only pairs whose photograph is there count, for the blind model as well. Chance is 50 %.
    """
    if not retriever and blind is None:
        raise UserError("nothing to score the pairs by", remedy="give --retriever, --blind or both")
    if retriever and photographs is None:
        raise UserError("a retriever sees photographs", remedy="give their folder with --photographs")
    from vitcapr.studies.compositional import read_foils, score_foils
    from vitcapr.studies.figures import draw_foils, write_figure, write_tables

    listed = [pair for path in pairs for pair in read_foils(path)]
    kept = [pair for pair in listed if photographs is None or (photographs / pair.image).is_file()]
    if not kept:
        raise UserError("no photograph of the pairs is there", where=photographs, remedy=f"such as {listed[0].image}")
    scorers = {folder.name: _cosine(folder, photographs or Path()) for folder in retriever or []}
    if blind is not None:
        from vitcapr.encoders.language_models import load_judge

        judge = load_judge(blind, "main", "cpu")
        scorers["blind"] = lambda _, captions: judge(captions)
    accuracies = score_foils(kept, scorers, samples, seed)
    _print(accuracies)
    print(f"\n{len(kept):,} of {len(listed):,} pairs; chance 50 %; a tie counts one half")
    if output is not None:
        write_tables(output, accuracy=accuracies)
        write_figure(draw_foils(accuracies), output / "accuracy")


def _cosine(folder: Path, photographs: Path) -> "Scorer":
    from vitcapr.api.retriever import load_retriever
    from vitcapr.studies.compositional import cosine_scorer

    model = load_retriever(folder)
    return cosine_scorer(lambda images: model.embed_images([photographs / name for name in images]), model.embed_texts)


def _print(accuracies: "pd.DataFrame") -> None:
    from vitcapr.formats.tables import Table, number, row
    from vitcapr.formats.terminal import print_listing

    rows = []
    for split, parts in accuracies.groupby("split", sort=False):
        cells = [number(one["accuracy"], one["low"], one["high"], scale=100) for one in parts.to_dict("records")]
        first = parts.iloc[0]
        ceiling = number(first["order_blind"], scale=100)
        rows.append(row(str(split), *cells, ceiling, *(str(first[name]) for name in ("same_words", "pairs", "images"))))
    names = dict.fromkeys(accuracies["scorer"])
    columns = ("split", *names, "order-blind at most", "same words", "pairs", "images")
    print_listing(Table("", columns, tuple(rows)))


app = typed(main)
