"""Flickr8k as it is on disk -> the manifest."""

from pathlib import Path

from vitcapr.cli.parts.options import Log, ManifestFolder, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.data import Flickr8kSettings
from vitcapr.data.collect import collect
from vitcapr.data.flickr8k import list_flickr8k
from vitcapr.data.images import ImageSource
from vitcapr.errors import UserError
from vitcapr.progress import Reporter

EXPECTED = "name the folder Flicker8k_Dataset or Flickr8k_Dataset.zip"


def main(
    output_dir: ManifestFolder,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Check the photographs and captions of Flickr8k and write their manifest."""
    options = parse_settings(Flickr8kSettings, settings)
    flickr8k = options.flickr8k
    for key, value in (("images", flickr8k.images), ("text", flickr8k.text)):
        if not value:
            raise UserError(f"data.flickr8k.{key} is not set", remedy="see config.yaml for what it should name")
    if not Path(flickr8k.images).exists():
        raise UserError("data.flickr8k.images: no such folder or zip", where=flickr8k.images, remedy=EXPECTED)
    with Reporter(log) as reporter, ImageSource(Path(flickr8k.images)) as source:
        listing = list_flickr8k(source.files(), Path(flickr8k.text), splits=flickr8k.splits, seed=flickr8k.seed)
        if all(image.path is None for image in listing.images):
            raise UserError("data.flickr8k.images: no photographs there", where=flickr8k.images, remedy=EXPECTED)
        collect(
            listing,
            source,
            output_dir,
            dataset="flickr8k",
            language="en",
            max_pixels=options.max_pixels,
            on_bad_image=options.on_bad_image,
            limit=flickr8k.limit,
            reporter=reporter,
        )


if __name__ == "__main__":
    launch(main)
