"""Match the first captions of every image and the first images of every caption with a cross-attention reranker."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.cli.parts.options import EmbeddedSplit, Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.cross_encoder import CrossEncodeSettings
from vitcapr.data.manifest import read_manifest
from vitcapr.errors import UserError
from vitcapr.features.batches.captions import captions_of
from vitcapr.features.encoders.precision import resolve_device
from vitcapr.features.store.reader import open_features
from vitcapr.files import sha256_file
from vitcapr.metrics.reordered import Matches, first_matches
from vitcapr.metrics.retrieval_files import check_pool, read_embeddings
from vitcapr.progress import Reporter
from vitcapr.retrieval.cross_encoder import match_pairs, open_cross_encoder
from vitcapr.text.tokens import TokenTable


def main(
    embeddings: Annotated[Path, typer.Option(help="embeddings.npz of the split by the retriever")],
    cross_encoder: Annotated[Path, typer.Option(help="Folder of the trained cross-attention reranker")],
    features: Annotated[Path, typer.Option(help="Sealed manifest.json of the features it was trained on")],
    manifest: ManifestFile,
    tokens: Annotated[Path, typer.Option(help="tokens.npz it was trained with")],
    split: EmbeddedSplit,
    output: Annotated[Path, typer.Option(help="matches.npz to write")],
    text_features: Annotated[
        Path | None, typer.Option(help="Sealed manifest.json of the text features, if it was trained with them")
    ] = None,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Match what a retriever found first, in both directions; a pair that both directions name is matched once."""
    options = parse_settings(CrossEncodeSettings, settings)
    device = resolve_device(options.device)
    with Reporter(log) as reporter:
        data, store, table = read_manifest(manifest), open_features(features), TokenTable.read(tokens)
        sentences = None if text_features is None else open_features(text_features)
        model, card = open_cross_encoder(cross_encoder, device)
        given = {
            "features": store.fingerprint,
            "text_features": None if sentences is None else sentences.fingerprint,
            "tokens": sha256_file(tokens),
        }
        for name, digest in given.items():
            if digest != card["inputs"][name]:
                raise UserError(f"the reranker was trained with other {name.replace('_', ' ')}", where=cross_encoder)
        found = read_embeddings(embeddings)
        check_pool(found, data, split, embeddings)
        image_captions, image_cosines, caption_images, caption_cosines = first_matches(found, options.top)
        keys = [
            (np.arange(len(found.images))[:, None] * len(found.captions) + image_captions),
            caption_images.astype(np.int64) * len(found.captions) + np.arange(len(found.captions))[:, None],
        ]
        wanted = np.unique(np.concatenate([key.ravel() for key in keys]))
        place_of_row = {int(row): place for place, row in enumerate(table.caption_row)}
        with reporter.track("cross_encode", len(wanted), "pairs") as tracker:
            logits = match_pairs(
                model,
                store,
                captions_of(table, model.max_length, sentences, data),
                image_row=found.image_row,
                caption_place=np.array([place_of_row[int(row)] for row in found.caption_row], np.int64),
                pairs=np.stack(np.divmod(wanted, len(found.captions)), axis=1),
                batch=options.batch,
                device=device,
                advance=tracker.advance,
            )
        image_logits, caption_logits = (logits[np.searchsorted(wanted, key)] for key in keys)
        Matches(
            image_captions,
            image_cosines,
            image_logits,
            caption_images,
            caption_cosines,
            caption_logits,
            found.image_row,
            found.caption_row,
            found.caption_image,
        ).write(output)


if __name__ == "__main__":
    launch(main)
