from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from vitcapr.config.base import find_data
from vitcapr.config.data import DataSettings, Flickr8kConfig, PairsConfig, PictureChecks, Withdrawn
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import Out, stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.data.collect import Listing

_READ = {
    "table": ("data.pairs.table", "data.pairs.images"),
    "flickr8k": ("data.flickr8k.", "data.pairs.chinese"),
}
"""For each source of pairs, the prefixes of the configuration keys whose files are read."""


class PairsSettings(Withdrawn, PictureChecks, DataSettings):
    """The settings of the stage ``data_pairs``."""

    pairs: PairsConfig = PairsConfig()
    flickr8k: Flickr8kConfig = Flickr8kConfig()

    def user_files(self) -> Iterator[tuple[str, Path]]:
        read = ("data.withdrawn", *_READ[self.pairs.source])
        yield from ((key, path) for key, path in super().user_files() if key.startswith(read))


@stage(execution_only={"max_rejected"})
def data_pairs(settings: PairsSettings, report: Reporter, folder: Out[kinds.PairsFolder]) -> None:
    """Check pictures, clean texts and split the pairs into training, validation and test sets."""
    from vitcapr.data.bilingual_pairs import list_table, pairs_of_flickr8k, unpacked_picture
    from vitcapr.data.withdrawn import read_withdrawn

    pairs, flickr8k = settings.pairs, settings.flickr8k
    if pairs.source == "flickr8k":
        image_root, text, chinese = map(find_data, (flickr8k.images, flickr8k.text, pairs.chinese))
        listing = pairs_of_flickr8k(image_root, text, chinese, splits=flickr8k.splits)
    else:
        listing, image_root = list_table(
            table := find_data(pairs.table),
            images=find_data(pairs.images) if pairs.images else table.parent,
            encoded=pairs.encoding == "base64",
            unpack_to=folder,
        )
    write_cleaned_pairs(folder, listing, image_root, pairs, settings, report)
    for digest in read_withdrawn(settings.withdrawn).values():
        unpacked_picture(folder, digest).unlink(missing_ok=True)


def write_cleaned_pairs(
    folder: Path, listing: "Listing", image_root: Path, pairs: PairsConfig, checks: PictureChecks, report: Reporter
) -> None:
    """Write the pairs of a listing, and what cleaning removed of their texts."""
    from vitcapr.data.bilingual_pairs import PairRecipe, write_pairs
    from vitcapr.data.collect import Checks
    from vitcapr.data.images import ImageSource
    from vitcapr.formats.pair_files import write_cleaning
    from vitcapr.text.cleaning import Cleaner

    cleaner = Cleaner()
    with ImageSource(image_root) as source:
        write_pairs(
            folder,
            listing,
            source,
            clean=cleaner.clean if pairs.clean else lambda text, _: text,
            recipe=pairs.to(PairRecipe),
            checks=checks.to(Checks),
            reporter=report,
        )
    removed = dict(sorted(cleaner.removed.items()))
    write_cleaning(folder / "cleaning.json", removed, cleaned=pairs.clean)
    for language, counts in removed.items():
        share = 1 - counts["kept"] / max(1, counts["characters"])
        report.line(f"{language}: cleaning removed {share:.1%} of the characters, {counts['fillers']} fillers")
