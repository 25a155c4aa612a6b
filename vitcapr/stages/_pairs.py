"""The end of the stages that write pairs: texts are cleaned, images checked, and the pairs split."""

from pathlib import Path
from typing import TYPE_CHECKING

from vitcapr.config.data import PairsConfig, PictureChecks
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.data.collect import Listing


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
