"""Write a folder to look at all images with captions, attention and neighbours."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError
from vitcapr.formats.model import CARD
from vitcapr.progress import print_lines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from vitcapr.extensions.explorer.spaces import Embed
    from vitcapr.progress import Reporter


def main(
    results: Annotated[list[Path], typer.Argument(help="Folders of experiments, results/NAME, to show side by side.")],
    split: Annotated[str, typer.Option(help="The split whose images are shown.")] = "test",
    output: Annotated[Path | None, typer.Option(help="The folder to write; results/NAME/explorer by default.")] = None,
    embed: Annotated[
        bool, typer.Option("--embed/--no-embed", help="Embed the captions of the systems with the retrievers.")
    ] = True,
) -> None:
    """Write a folder to explore all images of a split with captions, scores, attention and neighbours.

    Open its index.html in a browser. It needs no network.
    """
    from vitcapr.extensions.explorer.contents import Contents
    from vitcapr.extensions.explorer.results import read_experiment
    from vitcapr.extensions.explorer.writing import write_explorer
    from vitcapr.progress import Reporter, format_bytes

    report = Reporter()
    embedder = (load_embedder(results, report),) if embed else ()
    contents = Contents([read_experiment(folder, split) for folder in results], split, *embedder)
    folder = output or results[0] / "explorer"
    beside = folder.parent.resolve() == results[0].resolve() and (results[0] / "index.html").is_file()
    write_explorer(folder, contents, report, "../index.html" if beside else None)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print_lines(f"{folder / 'index.html'}: {len(contents.gallery.images)} images, {format_bytes(size)}")


def load_embedder(folders: Sequence[Path], report: "Reporter") -> "Embed":
    """Embeds texts with the retrievers of the experiments. A retriever that cannot be loaded is one line."""

    def embed(number: int, model: str, texts: Sequence[str]) -> "NDArray[np.float32] | None":
        from vitcapr.api.trained_retriever import load_retriever

        retriever = folders[number] / "retrievers" / model
        if not (retriever / CARD).is_file():  # A fine-tuned dual encoder, or scores corrected with a query bank.
            return None
        try:
            return load_retriever(retriever, reporter=report).embed_texts(texts)
        except UserError as error:
            report.line(f"explore: the captions have no neighbours in {model}: {error}")
            return None

    return embed


app = typer_app(main)
