"""Stores that nothing refers to any more: what changed settings leave behind."""

import time
from dataclasses import dataclass
from pathlib import Path

from vitcapr.formats.store_manifest import FeaturePart, read_sealed
from vitcapr.store.layout import CHECKSUMS, GROUP
from vitcapr.store.writer import STORE_NAME_LENGTH

_RECENT_SECONDS = 3600.0


@dataclass(frozen=True)
class UnusedStore:
    """A store without a sealed manifest or a finished task that belongs to it.

    Attributes:
        size: in bytes.
        chunks: how many are finished.
        recent: it was written to within the last hour, so an extraction may be filling it now.
    """

    path: Path
    size: int
    chunks: int
    recent: bool


def unused_stores(results: Path) -> list[UnusedStore]:
    """The stores in ``results/stores`` that no ``results/*/features/*`` or ``results/*/text_features/*`` refers to.

    They come by name. A folder that is no store is none of them, and a link is none. A store of captions has no parts,
    so one that is being filled is told only by being ``recent``.

    Raises:
        UserError: a manifest or part cannot be read, so that it is not known what it refers to.
    """
    used = set()
    for kind in ("features", "text_features"):
        for sealed in results.glob(f"*/{kind}/*/manifest.json"):
            used.add((sealed.parent / read_sealed(sealed)["store"]).resolve().parent.name)
    for part in results.glob("*/features/*/parts/*.json"):
        used.add(FeaturePart.read(part).fingerprint[:STORE_NAME_LENGTH])
    root = results / "stores"
    if not root.resolve().is_relative_to(results.resolve()):
        return []
    stores = (path for path in sorted(root.glob("*")) if not path.is_symlink() and (path / GROUP).is_dir())
    return [_measure(path) for path in stores if path.name not in used]


def _measure(path: Path) -> UnusedStore:
    size, newest = 0, path.stat().st_mtime
    for file in path.rglob("*"):
        status = file.stat()
        size, newest = size + (status.st_size if file.is_file() else 0), max(newest, status.st_mtime)
    finished = sum(1 for _ in (path / CHECKSUMS).glob("[0-9]*.json"))
    return UnusedStore(path, size, finished, time.time() - newest < _RECENT_SECONDS)
