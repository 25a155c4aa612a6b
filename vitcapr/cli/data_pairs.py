"""Pairs of texts and pictures in two languages -> the manifest, the texts before cleaning, the split and the pools."""

import os
from pathlib import Path

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Log, ManifestFolder, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.data import PairsSettings
from vitcapr.data.flickr8k import list_flickr8k
from vitcapr.data.images import ImageSource
from vitcapr.data.pairs.dataset import PairRecipe, write_pairs
from vitcapr.data.pairs.record import Pair
from vitcapr.data.pairs.sources import flickr8k_pairs, manifest_pairs
from vitcapr.data.pairs.table import Columns, list_table
from vitcapr.data.scenes.dataset import write_scenes
from vitcapr.files import sha256_bytes, write_json
from vitcapr.progress import Reporter
from vitcapr.text.cleaning import Cleaner

PICTURES = "pictures"

Listed = tuple[list[Pair], list[tuple[str, str]], Path]
"""Pairs, what was left out with its reason, and the image root."""


def main(
    output_dir: ManifestFolder,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Check pictures, clean texts and split pairs into training, validation and what is set apart for testing."""
    options = parse_settings(PairsSettings, settings)
    wanted = options.pairs
    listers = {"table": _table, "flickr8k": _flickr8k, "scenes": _scenes}
    cleaner = Cleaner()
    with Reporter(log) as reporter:
        pairs, rejected, root = listers[wanted.source](options, output_dir, reporter)
        with ImageSource(root) as source:
            write_pairs(
                output_dir,
                pairs,
                source,
                rejected=rejected,
                clean=cleaner.clean if wanted.clean else lambda text, _: text,
                recipe=PairRecipe(
                    wanted.pairs,
                    wanted.validation,
                    wanted.test_images,
                    wanted.queries,
                    wanted.candidates,
                    wanted.seed,
                ),
                max_pixels=options.max_pixels,
                on_bad_image=options.on_bad_image,
                reporter=reporter,
            )
        removed = {language: counts.describe() for language, counts in sorted(cleaner.removed.items())}
        write_json(output_dir / "cleaning.json", {"cleaned": wanted.clean, "languages": removed})
        for language, counts in removed.items():
            share = 1 - counts["kept"] / max(1, counts["characters"])
            reporter.line(f"{language}: cleaning takes {share:.1%} of the characters, {counts['fillers']} fillers")


def _table(options: PairsSettings, output_dir: Path, reporter: Reporter) -> Listed:
    wanted = options.pairs
    table = Path(wanted.table)
    images = Path(wanted.images) if wanted.images else table.parent
    unpacked = 0

    def unpack(content: bytes) -> str:
        nonlocal unpacked
        digest = sha256_bytes(content)
        path = f"{PICTURES}/{digest[:2]}/{digest}"
        file = output_dir / path
        file.parent.mkdir(parents=True, exist_ok=True)
        # Not sealed yet: the manifest, written last, names the digest.
        file.write_bytes(content)
        unpacked += 1
        return path

    existing: set[str] = set()
    if wanted.encoding == "path":
        with ImageSource(images) as source:
            existing = set(source.files())
    columns = Columns(**wanted.columns.canonical())
    encoded = wanted.encoding == "base64"
    pairs, rejected = list_table(table, columns, encoded=encoded, existing=existing, unpack=unpack)
    if unpacked:
        reporter.line(f"{unpacked} pictures unpacked from {table}")
    return pairs, rejected, output_dir if unpacked or encoded else images


def _flickr8k(options: PairsSettings, _: Path, __: Reporter) -> Listed:
    found = options.flickr8k
    with ImageSource(Path(found.images)) as source:
        listing = list_flickr8k(source.files(), Path(found.text), splits=found.splits, seed=found.seed)
    pairs, rejected = flickr8k_pairs(listing, Path(options.pairs.chinese))
    return pairs, rejected, Path(found.images)


def _scenes(options: PairsSettings, output_dir: Path, reporter: Reporter) -> Listed:
    scenes = options.scenes
    manifest = write_scenes(
        output_dir,
        images=scenes.images,
        size=scenes.size,
        seed=scenes.seed,
        validation=scenes.validation,
        test=scenes.test,
        processes=len(os.sched_getaffinity(0)),
        reporter=reporter,
    )
    return manifest_pairs(read_manifest(manifest)), [], output_dir


if __name__ == "__main__":
    launch(main)
