"""Flickr30k as it is on disk -> the manifest."""

from pathlib import Path

from vitcapr.cli.parts.options import Log, ManifestFolder, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.data import Flickr30kConfig, Flickr30kSettings
from vitcapr.data.collect import Listing, collect
from vitcapr.data.flickr30k import list_photographs, list_release
from vitcapr.data.images import ImageSource
from vitcapr.data.tables import SUFFIX
from vitcapr.errors import UserError
from vitcapr.progress import Reporter

EXPECTED = "name the folder of the Parquet files, or the folder flickr30k-images or a zip of it"


def main(
    output_dir: ManifestFolder,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Check the photographs and captions of Flickr30k and write their manifest."""
    options = parse_settings(Flickr30kSettings, settings)
    flickr30k = options.flickr30k
    if not flickr30k.images:
        raise UserError("data.flickr30k.images is not set", remedy="see config.yaml for what it should name")
    images = Path(flickr30k.images)
    if not images.exists():
        raise UserError("data.flickr30k.images: no such folder or file", where=images, remedy=EXPECTED)
    one_table = images.suffix == SUFFIX
    with Reporter(log) as reporter, ImageSource(images.parent if one_table else images) as source:
        listing = _listing(flickr30k, source, [images.name] if one_table else source.files())
        if all(image.path is None for image in listing.images):
            raise UserError("data.flickr30k.images: no photographs there", where=images, remedy=EXPECTED)
        collect(
            listing,
            source,
            output_dir,
            dataset="flickr30k",
            language="en",
            max_pixels=options.max_pixels,
            on_bad_image=options.on_bad_image,
            limit=flickr30k.limit,
            reporter=reporter,
        )


def _listing(flickr30k: Flickr30kConfig, source: ImageSource, files: list[str]) -> Listing:
    lists = Path(flickr30k.lists) if flickr30k.lists else None
    if flickr30k.text:
        return list_photographs(files, Path(flickr30k.text), splits=flickr30k.splits, lists=lists, seed=flickr30k.seed)
    tables = [name for name in files if name.endswith(SUFFIX)]
    if not tables:
        raise UserError(
            "data.flickr30k.images: no Parquet files there",
            where=source.root,
            remedy="name their folder or, for a folder of photographs, set data.flickr30k.text",
        )
    return list_release(source.root, tables, splits=flickr30k.splits, lists=lists, seed=flickr30k.seed)


if __name__ == "__main__":
    launch(main)
