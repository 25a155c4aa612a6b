import os
from collections.abc import Iterator
from pathlib import Path

from vitcapr.config.data import DataSettings, Flickr8kConfig, PairsConfig, PictureChecks, ScenesConfig
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter

_READ = {
    "table": ("data.pairs.table", "data.pairs.images"),
    "flickr8k": ("data.flickr8k.", "data.pairs.chinese"),
    "scenes": (),
}
"""For each source of pairs, the prefixes of the configuration keys whose files are read."""


class PairsSettings(PictureChecks, DataSettings):
    """The settings of the stage ``data_pairs``."""

    pairs: PairsConfig = PairsConfig()
    flickr8k: Flickr8kConfig = Flickr8kConfig()
    scenes: ScenesConfig = ScenesConfig()

    def user_files(self) -> Iterator[tuple[str, Path]]:
        yield from ((key, path) for key, path in super().user_files() if key.startswith(_READ[self.pairs.source]))


@stage(execution_only={"max_rejected"})
def data_pairs(settings: PairsSettings, report: Reporter, folder: Out[kinds.PairsFolder]) -> None:
    """Check pictures, clean texts and split the pairs into training, validation and test sets."""
    from vitcapr.data.collect import Checks
    from vitcapr.data.images import ImageSource
    from vitcapr.data.pairs.dataset import PairRecipe, write_pairs
    from vitcapr.data.pairs.sources import manifest_pairs, pairs_of_flickr8k, pairs_of_table
    from vitcapr.demo.scenes.dataset import write_scenes
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.pairs import write_cleaning
    from vitcapr.text.cleaning import Cleaner

    pairs, flickr8k = settings.pairs, settings.flickr8k
    if pairs.source == "scenes":
        # Pairs are split anew: a near duplicate for validation could have its original in training.
        scenes = settings.scenes.model_copy(update={"near_duplicates": False})
        manifest = write_scenes(folder, scenes, len(os.sched_getaffinity(0)), report)
        listing, image_root = manifest_pairs(read_manifest(manifest)), folder
    elif pairs.source == "flickr8k":
        image_root, text, chinese = Path(flickr8k.images), Path(flickr8k.text), Path(pairs.chinese)
        listing = pairs_of_flickr8k(image_root, text, chinese, splits=flickr8k.splits, seed=flickr8k.seed)
    else:
        listing, image_root = pairs_of_table(
            Path(pairs.table),
            pairs.columns.model_dump(),
            images=Path(pairs.images) if pairs.images else Path(pairs.table).parent,
            encoded=pairs.encoding == "base64",
            unpack_to=folder,
            reporter=report,
        )
    cleaner = Cleaner()
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
    removed = dict(sorted(cleaner.removed.items()))
    write_cleaning(folder / "cleaning.json", removed, cleaned=pairs.clean)
    for language, counts in removed.items():
        share = 1 - counts["kept"] / max(1, counts["characters"])
        report.line(f"{language}: cleaning removed {share:.1%} of the characters, {counts['fillers']} fillers")
