"""Find images by words or by an image."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vitcapr.api.trained_retriever import load_retriever
from vitcapr.commands.main import Device, typer_app
from vitcapr.errors import UserError
from vitcapr.extensions.applications.options import Backbone

if TYPE_CHECKING:
    import pandas as pd

    from vitcapr.api.trained_retriever import TrainedRetriever


def main(
    words: Annotated[list[str] | None, typer.Argument(help="What to search for.")] = None,
    image: Annotated[Path | None, typer.Option(help="A photograph to search for, instead of words.")] = None,
    retriever: Annotated[
        Path | None,
        typer.Option(help="Folder of the trained retriever, or of an experiment; with several, prints their names."),
    ] = None,
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="Number of results.")] = 10,
    split: Annotated[str | None, typer.Option(help="Search only this split (default: all images).")] = None,
    captions: Annotated[bool, typer.Option("--captions", help="Find the nearest captions as well.")] = False,
    page: Annotated[Path | None, typer.Option("--html", help="Write a page with thumbnails.")] = None,
    features: Annotated[
        Path | None, typer.Option(help="manifest.json of other image features to search, with --manifest.")
    ] = None,
    manifest: Annotated[Path | None, typer.Option(help="manifest.json of another data set to search.")] = None,
    text_encoder: Annotated[
        str | None, typer.Option(help="Hub id or folder of the text encoder, if not found by its name.")
    ] = None,
    backbone: Backbone = None,
    device: Device = "auto",
) -> None:
    """Find the images that fit the words, or that are like an image, by the cosine of their embeddings.

    The experiment that contains the retriever supplies vocabulary, data set and features. The first search embeds all
    images and keeps their embeddings in the folder of the retriever.
    """
    if bool(words) == (image is not None):
        raise UserError("a search is for words or for an image", remedy='give "words", or --image FILE')
    if image is not None and not image.is_file():
        raise UserError("no such image", where=image)

    from vitcapr.files import write_text
    from vitcapr.progress import Reporter

    reporter, text = Reporter(), " ".join(words or ()) or None
    opened = load_retriever(
        retriever,
        device=device,
        features=features,
        manifest=manifest,
        text_encoder=text_encoder,
        backbone=backbone,
        reporter=reporter,
    )
    if text and (unknown := opened.unknown_words(text)):
        reporter.line(f"not in the vocabulary of the retriever: {', '.join(unknown)}")
    query = opened.query(text, image)
    images = opened.nearest("images", query, top, split)
    _print(images, "caption")
    nearest_captions = opened.nearest("captions", query, top, split) if captions else None
    if nearest_captions is not None:
        _print(nearest_captions, "text")
    if page is not None:
        write_text(page, _page(text, image, opened, images, nearest_captions))
        reporter.line(f"{page}: {len(images)} images")


def _page(
    text: str | None,
    image: Path | None,
    retriever: "TrainedRetriever",
    images: "pd.DataFrame",
    captions: "pd.DataFrame | None",
) -> str:
    """Return the query, the images with rank, cosine and a caption, then the captions."""
    from jinja2 import Environment

    from vitcapr.data.images import BadImage, ImageSource, data_url, thumbnail
    from vitcapr.data.photographs import MAX_PIXELS, open_image
    from vitcapr.formats.page import html_page

    with ImageSource(retriever.image_root) as source:
        pictures: list[str] = []
        for path in images["path"]:
            try:
                pictures.append(data_url(thumbnail(source.open(path, MAX_PIXELS))))
            except BadImage:  # The image is listed even if its file is missing now.
                pictures.append("")
    template = Path(__file__).parents[1].joinpath("search.html").read_text(encoding="utf-8")
    title = text or (image.name if image else "")
    body = (
        Environment(autoescape=True)
        .from_string(template)
        .render(
            query=title,
            query_image=image and data_url(thumbnail(open_image(image))),
            images=images.assign(picture=pictures).to_dict("records"),
            captions=[] if captions is None else captions.to_dict("records"),
            note=f"retriever {retriever.folder.name}; cosine",
        )
    )
    return html_page(title, body)


def _print(nearest: "pd.DataFrame", text: str) -> None:
    """Print one line per result with rank, cosine, image and caption."""
    from vitcapr.formats.tables import Table, row
    from vitcapr.formats.terminal import print_listing

    columns = nearest[["rank", "cosine", "path", text]].itertuples(index=False)
    rows = [row(str(rank), f"{cosine:.3f}", path, caption) for rank, cosine, path, caption in columns]
    if rows:
        print_listing(Table("", ("rank", "cosine", "image", "caption"), tuple(rows), align="rrll"))


app = typer_app(main)
