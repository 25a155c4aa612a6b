"""Reading a whole store again, to find what a disk or a hand has changed since it was sealed."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vitcapr.files import sha256_file
from vitcapr.formats.store_manifest import IDENTITIES, read_sealed
from vitcapr.store.layout import CHECKSUMS, ArrayLayout, checksum_path, chunk_path


@dataclass(frozen=True)
class ChunkCheck:
    """One chunk file and what is wrong with it; ``problem`` is None for a sound one.

    ``checksum`` is the record that has to go with the chunk for extraction to compute it again. The ids have no record
    of their own: extraction writes them whenever it has any chunk to compute, so theirs is that of the first chunk.
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
    recorded_apart = (group.parent / CHECKSUMS).is_dir()
    for name, array in manifest["arrays"].items():
        layout = ArrayLayout(tuple(array["shape"]), manifest["chunk"], array["dtype"], ())
        for index, expected in enumerate(array["checksums"]):
            if expected is None:  # A chunk that a partial store does not have.
                continue
            path = chunk_path(group / name, index, len(layout.shape))
            problem = _problem(path, layout.chunk_bytes, expected)
            checksum = checksum_path(group.parent, index) if recorded_apart else None
            yield ChunkCheck(name, index, path, layout.chunk_bytes, problem, checksum)
    identity = next(name for name in IDENTITIES if name in manifest)
    ids = manifest[identity]
    path = chunk_path(group / identity, 0, 2)
    size = int(ids["shape"][0] * ids["shape"][1])
    checksum = checksum_path(group.parent, 0) if recorded_apart else None
    yield ChunkCheck(identity, 0, path, size, _problem(path, size, ids["checksum"]), checksum)


def _problem(path: Path, size: int, expected: str) -> str | None:
    if not path.is_file():
        return "missing"
    if path.stat().st_size != size:
        return f"{path.stat().st_size} bytes instead of {size}"
    return None if sha256_file(path) == expected else "its content is not what was sealed"
