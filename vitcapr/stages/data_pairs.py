"""Read text-image pairs in two languages; write the manifest, the uncleaned texts, the split and the query pools."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from vitcapr.config.data import Flickr8kConfig, PairsConfig, ScenesConfig
from vitcapr.config.dataset import DataSettings, PictureChecks
from vitcapr.formats.kinds import PairsFolder
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.data.collect import Listing

_READ = {
    "table": ("data.pairs.table", "data.pairs.images"),
    "flickr8k": ("data.flickr8k.", "data.pairs.chinese"),
    "scenes": (),
}
"""For each source of pairs, the prefixes of the configuration keys whose files are read."""


class PairsSettings(PictureChecks, DataSettings):
    pairs: PairsConfig = PairsConfig()
    flickr8k: Flickr8kConfig = Flickr8kConfig()
    scenes: ScenesConfig = ScenesConfig()

    def sources(self) -> dict[str, Path]:
        return {key: path for key, path in super().sources().items() if key.startswith(_READ[self.pairs.source])}


@stage(execution_only={"max_rejected"})
def data_pairs(settings: PairsSettings, report: Reporter, folder: Out[PairsFolder]) -> None:
    """Check pictures, clean texts and split the pairs into training, validation and test sets."""
    from vitcapr.data.collect import Checks
    from vitcapr.data.images import ImageSource
    from vitcapr.data.pairs.dataset import PairRecipe, write_pairs
    from vitcapr.formats.pairs import write_cleaning
    from vitcapr.text.cleaning import Cleaner

    pairs = settings.pairs
    cleaner = Cleaner()
    listing, image_root = _list_pairs(settings, folder, report)
    with ImageSource(image_root) as source:
        write_pairs(
            folder,
            listing,
            source,
            clean=cleaner.clean if pairs.clean else lambda text, _: text,
            recipe=pairs.to(PairRecipe),
            checks=settings.to(Checks),
            reporter=report,
        )
    removed = {language: counts.describe() for language, counts in sorted(cleaner.removed.items())}
    write_cleaning(folder / "cleaning.json", removed, cleaned=pairs.clean)
    for language, counts in removed.items():
        share = 1 - counts["kept"] / max(1, counts["characters"])
        report.line(f"{language}: cleaning removed {share:.1%} of the characters, {counts['fillers']} fillers")


def _list_pairs(settings: PairsSettings, folder: Path, report: Reporter) -> "tuple[Listing, Path]":
    """The pairs, and the root of their images."""
    from vitcapr.data.pairs.sources import manifest_pairs, pairs_of_flickr8k, pairs_of_table
    from vitcapr.data.pairs.table import ColumnNames
    from vitcapr.demo.scenes.dataset import write_scenes
    from vitcapr.formats.manifest import read_manifest

    pairs, flickr8k = settings.pairs, settings.flickr8k
    if pairs.source == "scenes":
        # Pairs are split anew: a near duplicate for validation could have its original in training.
        scenes = settings.scenes.model_copy(update={"near_duplicates": False})
        manifest = write_scenes(folder, scenes, len(os.sched_getaffinity(0)), report)
        return manifest_pairs(read_manifest(manifest)), folder
    if pairs.source == "flickr8k":
        images = Path(flickr8k.images)
        text, chinese = Path(flickr8k.text), Path(pairs.chinese)
        return pairs_of_flickr8k(images, text, chinese, splits=flickr8k.splits, seed=flickr8k.seed), images
    table = Path(pairs.table)
    return pairs_of_table(
        table,
        pairs.columns.to(ColumnNames),
        images=Path(pairs.images) if pairs.images else table.parent,
        encoded=pairs.encoding == "base64",
        unpack_to=folder,
        reporter=report,
    )
