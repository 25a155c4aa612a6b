"""Embed the pictures of a split, and its captions in every language that a matcher reads."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer

from vitcapr.arrays import write_arrays
from vitcapr.cli.parts.matcher import assembled, check_pixels
from vitcapr.cli.parts.named import parse_named
from vitcapr.cli.parts.options import EmbeddingsOutput, Log, ManifestFile, Pixels, Settings, SplitToEmbed, TagsFile
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.matcher import EmbedMatcherSettings
from vitcapr.data.manifest import read_manifest
from vitcapr.errors import UserError
from vitcapr.features.encoders.precision import resolve_device
from vitcapr.features.store.reader import open_features
from vitcapr.progress import Reporter, Tracker
from vitcapr.retrieval.matching import MatchEmbedder, check_tags, open_matcher
from vitcapr.text.tags import TagTable


def main(
    settings: Settings,
    pixels: Pixels,
    manifest: ManifestFile,
    split: SplitToEmbed,
    output: EmbeddingsOutput,
    matcher: Annotated[Path | None, typer.Option(help="Folder of the trained matcher; none: an untrained one")] = None,
    source: Annotated[str, typer.Option(help="The image tower's checkpoint, for an untrained one")] = "",
    tokenizer: Annotated[list[str] | None, typer.Option(help="NAME=tokenizer.json, for an untrained one")] = None,
    tags: TagsFile = None,
    log: Log = None,
) -> None:
    """Embed every image and caption of a split with a matcher, trained or as its training starts."""
    chosen = parse_settings(EmbedMatcherSettings, settings)
    with Reporter(log) as reporter:
        data, store = read_manifest(manifest), open_features(pixels)
        check_pixels(store, data, pixels)
        device = resolve_device(chosen.embed.device)
        words = None if tags is None else TagTable.read(tags)
        if matcher is not None:
            opened = open_matcher(matcher, store, device, words)
        else:
            torch.manual_seed(chosen.training.matcher.seed_in(chosen.training.seed))
            tokenizers = parse_named(tokenizer, "--tokenizer") if tokenizer else {}
            model, _, readers, _ = assembled(chosen.training, store, source, tokenizers)
            check_tags(model, words)
            opened = MatchEmbedder(model.to(device).eval(), readers, device, tags=words)
        images = data.rows(split)
        captions = data.captions_of(split)
        captions = captions[captions["language"].isin(opened.languages)].reset_index(drop=True)
        if not len(images) or captions.empty:
            raise UserError(f"the data set {data.dataset} has no image or no caption in the split '{split}'")
        batch = chosen.embed.batch
        with reporter.track("embed", len(images) + len(captions), "images and captions") as tracker:
            arrays: dict[str, Any] = {
                "images": _blocks(lambda at: opened.images(store, images[at]), len(images), batch, tracker),
                "captions": _blocks(lambda at: opened.captions(captions.iloc[at]), len(captions), batch, tracker),
                "image_row": images.astype(np.int32),
                "caption_row": captions["caption_row"].to_numpy(np.int32),
                "caption_image": np.searchsorted(images, captions["image_row"]).astype(np.int32),
            }
        write_arrays(output, arrays)


def _blocks(embed: Callable[[slice], np.ndarray], count: int, batch: int, tracker: Tracker) -> np.ndarray:
    """All ``count`` of them, ``batch`` at a time."""
    blocks = []
    for first in range(0, count, batch):
        blocks.append(embed(slice(first, first + batch)))
        tracker.advance(len(blocks[-1]))
    return np.concatenate(blocks)


if __name__ == "__main__":
    launch(main)
