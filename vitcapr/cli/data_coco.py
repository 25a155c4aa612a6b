"""MS COCO as it is on disk -> the manifest."""

from pathlib import Path

from vitcapr.cli.parts.options import Log, ManifestFolder, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.data import CocoSettings
from vitcapr.data.coco import list_coco, list_karpathy
from vitcapr.data.collect import collect
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.progress import Reporter

EXPECTED = "name the folder that holds train2014/, val2014/, train2017/ or val2017/, or one of these"


def main(
    output_dir: ManifestFolder,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Check the photographs and captions of MS COCO and write their manifest."""
    options = parse_settings(CocoSettings, settings)
    coco = options.coco
    if not coco.images:
        raise UserError("data.coco.images is not set", remedy=EXPECTED)
    if not (coco.annotations or coco.karpathy):
        raise UserError("data.coco.annotations is not set", remedy="name captions_*.json files, or set karpathy")
    if not Path(coco.images).exists():
        raise UserError("data.coco.images: no such folder or zip", where=coco.images, remedy=EXPECTED)
    with Reporter(log) as reporter, ImageSource(Path(coco.images)) as source:
        if coco.karpathy:
            listing = list_karpathy(source.files(), Path(coco.karpathy), restval=coco.restval)
        else:
            listing = list_coco(source.files(), [Path(file) for file in coco.annotations])
        if all(image.path is None for image in listing.images):
            raise UserError(
                f"data.coco.images: none of the {len(listing.images)} listed photographs is there",
                where=coco.images,
                remedy=EXPECTED,
            )
        collect(
            listing,
            source,
            output_dir,
            dataset="coco",
            language="en",
            max_pixels=options.max_pixels,
            on_bad_image=options.on_bad_image,
            limit=coco.limit,
            reporter=reporter,
        )


if __name__ == "__main__":
    launch(main)
