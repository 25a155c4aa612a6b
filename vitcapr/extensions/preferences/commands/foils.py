"""Compare true captions with foils, by retrievers, captioners and a blind model."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError
from vitcapr.progress import print_lines

if TYPE_CHECKING:
    from vitcapr.extensions.preferences.compositional import LikelihoodScorer, Preferences
    from vitcapr.formats.tables import Table
    from vitcapr.metrics.bootstrap import Array


def main(
    pairs: Annotated[list[Path], typer.Argument(help="JSON in the form of SugarCrepe; each file is a split.")],
    photographs: Annotated[Path | None, typer.Option(help="Folder of the photographs.")] = None,
    retriever: Annotated[
        list[Path] | None, typer.Option(help="Folder of a trained retriever, which scores by the cosine. Repeatable.")
    ] = None,
    captioner: Annotated[
        list[Path] | None, typer.Option(help="Folder of a trained captioner, which scores by likelihood. Repeatable.")
    ] = None,
    blind: Annotated[
        str | None, typer.Option(help="Causal language model that sees no image: a hub id or a folder.")
    ] = None,
    alpha: Annotated[
        float, typer.Option(min=0, help="Exponent of the likelihood without the image, which divides the likelihood.")
    ] = 1.0,
    samples: Annotated[int, typer.Option(min=0, help="Bootstrap samples for the intervals; 0 for none.")] = 1000,
    output: Annotated[
        Path | None, typer.Option(help="Folder for accuracy.csv, differences.csv, the figure and a page.")
    ] = None,
) -> None:
    """Print the share of pairs whose caption scores higher than its foil, by split.

    Intervals of 95 % are over the images.

    With --photographs, only pairs whose photograph is there count, for the blind model as well. Chance is 50 %.
    """
    if not retriever and not captioner and blind is None:
        raise UserError("nothing to score the pairs by", remedy="give --retriever, --captioner or --blind")
    if (retriever or captioner) and photographs is None:
        raise UserError("retrievers and captioners see photographs", remedy="give their folder with --photographs")
    from vitcapr.extensions.preferences.compositional import read_foils, score_foils
    from vitcapr.extensions.preferences.preference_figures import draw_foils, write_results
    from vitcapr.formats.terminal import print_listing

    _check_different([path.stem for path in pairs], "files of pairs")
    by_file = [read_foils(path) for path in pairs]
    listed, folder = [pair for each in by_file for pair in each], photographs or Path()
    kept = [pair for pair in listed if photographs is None or (folder / pair.image).is_file()]
    models = [*(retriever or []), *(captioner or [])]
    times = Counter(folder.name for folder in models)
    _check_different([_label(folder, times) for folder in models], "models")
    if not kept:
        raise UserError("no photograph of the pairs is there", where=photographs, remedy=f"such as {listed[0].image}")
    images = [pair.image for pair in kept] * 2
    captions = [pair.caption for pair in kept] + [pair.foil for pair in kept]
    captioners = {_label(one, times): _likelihood(one, folder) for one in captioner or []}
    scores = {_label(one, times): _cosines(one, folder, images, captions) for one in retriever or []}
    alone = None
    if blind is not None:
        from vitcapr.encoders.language_models import load_judge

        alone = load_judge(blind, "main", "auto")(captions)
    notes = [f"{len(kept):,} of {len(listed):,} pairs; chance 50 %; a tie counts one half"]
    for name, each in captioners.items():
        scores |= each.scores(name, images, captions, alone, alpha, seed=0)
        known = sum(each.knows(f"{pair.caption} {pair.foil}") for pair in kept)
        notes.append(f"{name} knows every word of {known:,} pairs; divided by the likelihood to the power of {alpha:g}")
    if alone is not None:
        scores["blind"] = alone
    preferences = score_foils(kept, scores, samples, seed=0)
    tables = _tables(preferences)
    for table in tables:
        print_listing(table)
        print_lines("")
    print_lines(*notes)
    if output is not None:
        page, figure = ("True captions and foils", tables, ". ".join(notes)), draw_foils(preferences.accuracies)
        write_results(output, page, figure, accuracy=preferences.accuracies, differences=preferences.differences)


def _check_different(names: list[str], what: str) -> None:
    """Check that no two names are equal.

    Raises:
        UserError: two of the names are equal.
    """
    for name, number in Counter(names).items():
        if number > 1:
            raise UserError(f"{number} {what} are called '{name}'", remedy="give each once, or rename one")


def _label(folder: Path, times: Mapping[str, int]) -> str:
    """Return the name of a model; with its experiment and kind if another has this name, too."""
    return folder.name if times[folder.name] == 1 else "/".join(folder.resolve().parts[-3:])


def _likelihood(folder: Path, photographs: Path) -> "LikelihoodScorer":
    import torch

    from vitcapr.api.trained_captioner import load_captioner
    from vitcapr.data.photographs import open_image
    from vitcapr.decoding.generate import open_captioner
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.extensions.preferences.compositional import LikelihoodScorer
    from vitcapr.formats.vocabulary import Vocabulary

    given, device = load_captioner(folder), resolve_device("auto")
    given.files.check_architecture()
    words = Vocabulary.read(given.vocabulary)
    model = open_captioner(given.folder, words, torch.float32).to(device).eval()
    (encoder,) = given.files.encoders([given.features], device, None)
    return LikelihoodScorer(
        model, words, lambda names: encoder.encode([open_image(photographs / name) for name in names])
    )


def _cosines(folder: Path, photographs: Path, images: list[str], captions: list[str]) -> "Array":
    from vitcapr.api.trained_retriever import load_retriever
    from vitcapr.extensions.preferences.compositional import cosines

    model = load_retriever(folder)
    return cosines(
        lambda names: model.embed_images([photographs / name for name in names]), model.embed_texts, images, captions
    )


def _tables(preferences: "Preferences") -> list["Table"]:
    """Return the accuracies by split and, of several scorers, their differences on all pairs."""
    from vitcapr.formats.tables import Table, number, row

    rows, accuracies, differences = [], preferences.accuracies, preferences.differences
    for split, parts in accuracies.groupby("split", sort=False):
        cells = [number(one["accuracy"], one["low"], one["high"], scale=100) for one in parts.to_dict("records")]
        first = parts.iloc[0]
        ceiling = number(first["order_blind"], scale=100)
        rows.append(row(str(split), *cells, ceiling, *(str(first[name]) for name in ("same_words", "pairs", "images"))))
    names = dict.fromkeys(accuracies["scorer"])
    columns = ("split", *names, "order-blind at most", "same words", "pairs", "images")
    tables, rows = [Table("", columns, tuple(rows))], []
    for one in differences[differences["split"] == "all"].to_dict("records"):
        gap = number(one["difference"], one["low"], one["high"], scale=100, signed=True)
        rows.append(row(f"{one['scorer']} - {one['other']}", gap, f"{one['p_value']:.3g}"))
    return [*tables, *([Table("", ("all pairs", "difference", "p"), tuple(rows))] if rows else [])]


app = typer_app(main)
