"""Embed the images of a split with DeViSE, and its captions as mean word vectors."""

from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from vitcapr.artefacts.embeddings import Embeddings, write_embeddings
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.model_folder import read_model
from vitcapr.cli.parts.options import EmbeddingsOutput, Features, Log, ManifestFile, Settings, SplitToEmbed
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.devise import TrainDeviseSettings
from vitcapr.features.store.reader import open_features
from vitcapr.models.devise import Devise
from vitcapr.progress import Reporter
from vitcapr.text.mean_vectors import caption_vectors
from vitcapr.text.word_vectors import VectorFile


def main(
    settings: Settings,
    features: Features,
    manifest: ManifestFile,
    vectors: Annotated[Path, typer.Option(help="The word vectors it was trained with")],
    devise: Annotated[Path, typer.Option(help="Folder of the trained DeViSE")],
    split: SplitToEmbed,
    output: EmbeddingsOutput,
    log: Log = None,
) -> None:
    """Embed a split. A caption without a known word is a zero vector: it is never found."""
    chosen = parse_settings(TrainDeviseSettings, settings)
    with Reporter(log) as reporter:
        data, store = read_manifest(manifest), open_features(features)
        weights, card = read_model(devise)
        model = Devise(**card["architecture"])
        model.load_state_dict(weights)
        captions = data.captions_of(split, chosen.devise.language)
        images = np.unique(captions["image_row"])
        found = caption_vectors(captions["text"].tolist(), VectorFile(vectors, chosen.dimension))
        with torch.inference_mode():
            mapped = model.embed_images(torch.from_numpy(store["cls"].gather(images)).float()).numpy()
        embeddings = Embeddings(
            images=mapped,
            captions=found.vectors,
            image_row=images.astype(np.int32),
            caption_row=captions["caption_row"].to_numpy(np.int32),
            caption_image=np.searchsorted(images, captions["image_row"]).astype(np.int32),
        )
        write_embeddings(output, embeddings)
        reporter.line(f"embed_devise: {len(images)} images and {len(captions)} captions of {split}")


if __name__ == "__main__":
    launch(main)
