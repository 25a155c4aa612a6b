"""Search the images of a feature store, by words or by an image, with a trained retriever."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
import torch
import typer
from PIL import Image

from vitcapr.api.model_files import ModelFiles, find_model
from vitcapr.artefacts.manifest import Manifest, read_manifest
from vitcapr.artefacts.model_folder import read_model
from vitcapr.commands.options import AugmentedViews, Device, NamedBackbone, OwnVocabulary
from vitcapr.commands.program import typed
from vitcapr.data.images import BadImage, ImageSource
from vitcapr.data.photographs import MAX_PIXELS, open_photograph
from vitcapr.errors import UserError
from vitcapr.features.encoders.photographs import open_like
from vitcapr.features.encoders.precision import resolve_device
from vitcapr.features.store.reader import FeatureStore, open_features
from vitcapr.files import write_text
from vitcapr.progress import Reporter
from vitcapr.retrieval.augmented_views import open_augmented_views
from vitcapr.retrieval.embedder import Retriever, open_retriever
from vitcapr.retrieval.page import FoundCaption, FoundImage, results_page, thumbnail
from vitcapr.retrieval.search import search
from vitcapr.tables.table import Table, row
from vitcapr.tables.terminal import print_listing


def main(
    words: Annotated[list[str] | None, typer.Argument(help="What to search for.")] = None,
    image: Annotated[Path | None, typer.Option(help="A photograph to search for, instead of words.")] = None,
    retriever: Annotated[
        Path | None,
        typer.Option(help="Folder of the trained retriever; if results/ holds a single one, that by default."),
    ] = None,
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="How many are found.")] = 10,
    split: Annotated[str | None, typer.Option(help="Search only this split; all images otherwise.")] = None,
    captions: Annotated[bool, typer.Option("--captions", help="Find the nearest captions as well.")] = False,
    page: Annotated[Path | None, typer.Option("--html", help="Write a page with thumbnails.")] = None,
    index: Annotated[Literal["exact", "faiss"], typer.Option(help="The results are the same.")] = "exact",
    device: Device = "auto",
    manifest: Annotated[
        Path | None, typer.Option(help="manifest.json of the data set, if not the experiment's own.")
    ] = None,
    features: Annotated[
        Path | None, typer.Option(help="manifest.json of the image features, if not the experiment's own.")
    ] = None,
    augmented_views: AugmentedViews = None,
    vocabulary: OwnVocabulary = None,
    text_features: Annotated[
        Path | None, typer.Option(help="manifest.json of the text features, if not the experiment's own.")
    ] = None,
    text_encoder: Annotated[
        str | None, typer.Option(help="Hub id or folder of the text encoder, if not found by its name.")
    ] = None,
    backbone: NamedBackbone = None,
) -> None:
    """Find the images that fit the words, or that are like an image, by the cosine of their embeddings.

    The experiment that contains the retriever supplies vocabulary, data set and features.
    """
    if bool(words) == (image is not None):
        raise UserError("a search is for words or for an image", remedy='give "words", or --image FILE')
    folder = find_model(retriever, "retriever")
    _, card = read_model(folder)
    beside = ModelFiles(folder, card, "retriever")
    opened = open_retriever(
        folder,
        vocabulary=beside.vocabulary(vocabulary),
        device=resolve_device(device),
        text_encoder=text_encoder,
    )
    data = read_manifest(beside.file(manifest, "data/manifest.json", "--manifest"))
    reporter = Reporter()
    stores = open_augmented_views(
        data,
        opened.augmented_views,
        beside.features(features),
        beside.augmented_views(augmented_views, opened.augmented_views),
    )
    rows = _rows(data, split)
    picture = None if image is None else _photograph(image)
    if picture is None:
        query = opened.text_embedder.embed([" ".join(words or [])])
    else:
        query = _embedded(opened, beside, backbone, stores, picture)
    with reporter.track("search", len(rows), "images") as tracker:
        found = search(query, rows, opened.image_embedder(*stores).embed, top, index, tracker.advance)
    images = _images(data, rows, found, with_pictures=page is not None)
    sentences: list[FoundCaption] = []
    if captions:
        items, embed = _sentences(opened, beside, data, split, text_features)
        with reporter.track("search", len(items), "captions") as tracker:
            sentences = _found_captions(data, items, search(query, items.index, embed, top, index, tracker.advance))
    _print([(each.score, each.name, each.caption) for each in images])
    _print([(each.score, each.name, each.caption) for each in sentences])
    if page is not None:
        name = " ".join(words or []) if image is None else image.name
        shown = None if picture is None else thumbnail(picture)
        note = f"{len(rows)} images of {data.dataset}" + (f", split {split}" if split else "")
        write_text(page, results_page(name, shown, images, sentences, f"{note}; retriever {folder.name}; cosine"))
        reporter.line(f"{page}: {len(images)} images")


def _rows(data: Manifest, split: str | None) -> np.ndarray:
    """The rows to search, in increasing order."""
    splits = sorted(set(data.images["split"]))
    if split is not None and split not in splits:
        raise UserError(f"no image is in the split '{split}'", remedy=f"the splits are {', '.join(splits)}")
    return np.arange(len(data.images)) if split is None else data.rows(split)


def _photograph(path: Path) -> Image.Image:
    try:
        return open_photograph(path)
    except BadImage as error:
        raise UserError(f"cannot search for this image: {error.reason}", where=path) from error


def _embedded(
    retriever: Retriever,
    beside: ModelFiles,
    backbone: str | None,
    stores: Sequence[FeatureStore],
    picture: Image.Image,
) -> np.ndarray:
    """The embedding (1, E) of a photograph: the mean over the same augmented views as for the stored images."""
    seen = []
    for store in stores:
        encoder = open_like(store.attributes, retriever.device, beside.backbone(backbone, store.attributes))
        features = encoder.encode([picture])
        seen.append({name: features[name] for name in retriever.model.image_arrays})
    with torch.inference_mode():
        return np.asarray(retriever.model.embed_augmented_views(seen).cpu())


def _images(
    data: Manifest, rows: np.ndarray, found: tuple[np.ndarray, np.ndarray], with_pictures: bool
) -> list[FoundImage]:
    """The found images, each with its first caption."""
    first = data.captions.drop_duplicates("image_id").set_index("image_id")["text"]
    images = []
    with ImageSource(data.image_root) if with_pictures else nullcontext() as source:
        for score, row in zip(found[0][0].tolist(), rows[found[1][0]].tolist(), strict=True):
            entry = data.images.iloc[row]
            name, caption = str(entry["path"]), str(first.get(entry["image_id"], ""))
            small = None
            if source is not None:
                # List the image even if its picture file is missing now.
                with suppress(BadImage):
                    small = thumbnail(source.open(name, MAX_PIXELS))
            images.append(FoundImage(score, name, caption, small))
    return images


def _sentences(
    retriever: Retriever, beside: ModelFiles, data: Manifest, split: str | None, text_features: Path | None
) -> tuple[pd.DataFrame, Callable[[Any], np.ndarray]]:
    """The captions to search (index: row of captions.parquet) and the function that embeds such rows."""
    table = data.captions_of(split, retriever.words.recipe["language"]).set_index("caption_row", drop=False)
    if retriever.model.reads == "tokens":
        return table, lambda rows: retriever.text_embedder.embed(table.loc[rows, "text"].tolist())
    name = retriever.card["settings"]["retriever"]["text"]["encoder"]
    path = beside.file(text_features, f"text_features/{name}/manifest.json", "--text-features")
    store = open_features(path)
    if store.ids != data.captions["caption_id"].tolist():
        raise UserError(
            f"the text features are not those of the captions of the data set {data.dataset}",
            where=path,
            remedy="give --manifest and --text-features of one experiment",
        )
    return table, retriever.text_feature_embedder(store, data.captions["text"].tolist()).embed


def _found_captions(data: Manifest, captions: pd.DataFrame, found: tuple[np.ndarray, np.ndarray]) -> list[FoundCaption]:
    chosen = captions.iloc[found[1][0]]
    paths = data.images["path"].iloc[chosen["image_row"]]
    return [
        FoundCaption(score, str(text), str(path))
        for score, text, path in zip(found[0][0].tolist(), chosen["text"], paths, strict=True)
    ]


def _print(found: Sequence[tuple[float, str, str]]) -> None:
    """Print one line per result with cosine, image and caption, numbered from 1."""
    rows = [row(str(rank), f"{score:.3f}", name, caption) for rank, (score, name, caption) in enumerate(found, 1)]
    if rows:
        print_listing(Table("", ("rank", "cosine", "image", "caption"), tuple(rows), align="rrll"))


app = typed(main)
