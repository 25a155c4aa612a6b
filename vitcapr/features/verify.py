"""Reading a whole store again, to find what a disk or a hand has changed since it was sealed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vitcapr.features.layout import CHECKSUMS, ArrayLayout, checksum_path, chunk_path
from vitcapr.features.store import read_sealed
from vitcapr.files import sha256_file


@dataclass(frozen=True)
class ChunkCheck:
    """One chunk file and what is wrong with it; ``problem`` is None for a sound one.

    ``checksum`` is the record that has to go with the chunk for extraction to compute it again.
    """

    array: str
    index: int
    path: Path
    size: int
    problem: str | None
    checksum: Path | None


def check_chunks(manifest_path: Path) -> Iterator[ChunkCheck]:
    """Read every chunk file of the sealed store and compare it with its checksum.

    Raises:
        UserError: ``manifest_path`` is not a sealed manifest.
    """
    manifest = read_sealed(manifest_path)
    group = (manifest_path.parent / manifest["store"]).resolve()
    for name, array in manifest["arrays"].items():
        layout = ArrayLayout(tuple(array["shape"]), manifest["chunk"], array["dtype"], ())
        for index, expected in enumerate(array["checksums"]):
            path = chunk_path(group / name, index, len(layout.shape))
            problem = _problem(path, layout.chunk_bytes, expected)
            checksum = checksum_path(group.parent, index) if (group.parent / CHECKSUMS).is_dir() else None
            yield ChunkCheck(name, index, path, layout.chunk_bytes, problem, checksum)
    recorded = manifest["image_id"]
    path = chunk_path(group / "image_id", 0, 2)
    size = int(recorded["shape"][0] * recorded["shape"][1])
    yield ChunkCheck("image_id", 0, path, size, _problem(path, size, recorded["checksum"]), None)


def _problem(path: Path, size: int, expected: str) -> str | None:
    if not path.is_file():
        return "missing"
    if path.stat().st_size != size:
        return f"{path.stat().st_size} bytes instead of {size}"
    return None if sha256_file(path) == expected else "its content is not what was sealed"
