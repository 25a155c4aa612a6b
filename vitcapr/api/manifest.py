"""The data set of an experiment."""

from pathlib import Path

from vitcapr.formats import manifest
from vitcapr.formats.manifest import Manifest


def read_manifest(path: str | Path) -> Manifest:
    """The data set of an experiment: its images and captions as data frames.

    Examples:
        >>> data = vitcapr.read_manifest("results/demo/data")  # doctest: +SKIP
        >>> data.captions_of("test", "en")["text"]  # doctest: +SKIP

    Args:
        path: ``manifest.json``, or the folder that holds it.

    Raises:
        UserError: it is missing, not a manifest, or one of its tables is missing or was altered.
    """
    file = Path(path)
    return manifest.read_manifest(file / "manifest.json" if file.is_dir() else file)
