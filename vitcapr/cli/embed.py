"""Embed the images and captions of a split with a trained retriever."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from vitcapr.artefacts.embeddings import Embeddings, write_embeddings
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import (
    EmbeddingsOutput,
    Log,
    ManifestFile,
    RetrieverFeatures,
    RetrieverFolder,
    RetrieverVocabulary,
    Settings,
    SplitToEmbed,
    Views,
)
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.retriever import EmbedSettings
from vitcapr.errors import UserError
from vitcapr.features.encoders.precision import resolve_device
from vitcapr.features.store.reader import open_features
from vitcapr.progress import Reporter, Tracker
from vitcapr.retrieval.embedder import open_retriever
from vitcapr.retrieval.views import open_views


def main(
    features: RetrieverFeatures,
    manifest: ManifestFile,
    vocabulary: RetrieverVocabulary,
    retriever: RetrieverFolder,
    split: SplitToEmbed,
    output: EmbeddingsOutput,
    view: Views = None,
    text_features: Annotated[
        Path | None, typer.Option(help="Sealed manifest.json of the text features, for a retriever that reads them")
    ] = None,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Embed every image and caption of a split."""
    options = parse_settings(EmbedSettings, settings).embed
    with Reporter(log) as reporter:
        data = read_manifest(manifest)
        opened = open_retriever(retriever, vocabulary=vocabulary, device=resolve_device(options.device))
        views = open_views(data, opened.views, features, view)
        captions = data.captions_of(split, opened.words.recipe["language"])
        # In a data set of several languages an image may have no caption in this one.
        images = np.unique(captions["image_row"])
        if not len(images) or captions.empty:
            raise UserError(f"the data set {data.dataset} has no image or no caption in the split '{split}'")
        caption_row = captions["caption_row"].to_numpy()
        if opened.model.reads == "tokens":
            of_captions: Callable[[Any], np.ndarray] = opened.text_embedder.embed
            asked: Any = captions["text"].tolist()
        elif text_features is None:
            raise UserError("this retriever reads text features", where=retriever, remedy="give --text-features")
        else:
            sentences = open_features(text_features)
            if sentences.ids != data.captions["caption_id"].tolist():
                raise UserError(
                    f"the text features are not those of the captions of the data set {data.dataset}",
                    where=text_features,
                    remedy="extract the text features of this data set",
                )
            texts = data.captions["text"].tolist()
            of_captions, asked = opened.text_feature_embedder(sentences, texts).embed, caption_row
        with reporter.track("embed", len(images) + len(captions), "images and captions") as tracker:
            embeddings = Embeddings(
                images=_embedded(opened.image_embedder(*views).embed, images, options.batch, tracker),
                captions=_embedded(of_captions, asked, options.batch, tracker),
                image_row=images.astype(np.int32),
                caption_row=caption_row.astype(np.int32),
                caption_image=np.searchsorted(images, captions["image_row"]).astype(np.int32),
            )
        write_embeddings(output, embeddings)


def _embedded(embed: Callable[[Any], np.ndarray], asked: Any, batch: int, tracker: Tracker) -> np.ndarray:
    """Everything asked for, block by block."""
    blocks = []
    for first in range(0, len(asked), batch):
        blocks.append(embed(asked[first : first + batch]))
        tracker.advance(len(blocks[-1]))
    return np.concatenate(blocks)


if __name__ == "__main__":
    launch(main)
