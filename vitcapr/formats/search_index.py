"""The search index of a retriever: the embeddings of images and captions, kept beside its weights.

``RETRIEVER/search/<key>/`` holds ``index.json`` (what the embeddings were made from), and for images and captions each
``NAME.npy``, (n, E) float32 of unit length, and ``NAME.parquet``, a row for each of its rows. ``images.faiss`` is there
if faiss built an index. The key is a digest of ``index.json``'s sources. Deleting the folder costs time only.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vitcapr.errors import UserError
from vitcapr.files import canonical_json, read_json, sha256_bytes, write_json
from vitcapr.formats.arrays import write_array
from vitcapr.formats.parquet import read_parquet, write_table

FORMAT = "vitcapr-search-index-1"
FOLDER, CARD, FAISS = "search", "index.json", "images.faiss"


@dataclass(frozen=True)
class IndexSources:
    """What the embeddings of an index were made from.

    Attributes:
        weights: digest of the retriever's weights.
        features: fingerprints of the stores: of the backbone, then of the augmented views.
        manifest: digest of the data set's manifest.json.
    """

    weights: str
    features: tuple[str, ...]
    manifest: str

    def folder(self, retriever: Path) -> Path:
        """Where the index of these sources lies."""
        key = sha256_bytes(canonical_json({"format": FORMAT, **asdict(self)}).encode())[:16]
        return retriever / FOLDER / key


@dataclass(frozen=True)
class IndexPart:
    """The embeddings of the images or of the captions.

    Attributes:
        vectors: (n, E) float32, memory-mapped.
        table: n rows; of images ``image_id, path, split, caption`` (its first), of captions ``text, path, split``.
    """

    vectors: np.ndarray
    table: "pa.Table"

    def column(self, name: str) -> np.ndarray:
        return np.asarray(self.table.column(name).to_numpy(zero_copy_only=False))

    def rows(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """The rows with these numbers, in their order."""
        found: list[dict[str, Any]] = self.table.take(pa.array(numbers, pa.int64())).to_pylist()
        return found


def read_part(folder: Path, name: str) -> IndexPart | None:
    """A part of an index; None if it is not there, or not whole."""
    try:
        vectors = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
        table = read_parquet(folder / f"{name}.parquet")
    except (OSError, ValueError, EOFError, pa.ArrowException, UserError):
        return None
    if vectors.ndim != 2 or vectors.dtype != np.float32 or len(vectors) != table.num_rows:
        return None
    return IndexPart(vectors, table)


def write_part(
    retriever: Path, sources: IndexSources, name: str, vectors: np.ndarray, columns: Mapping[str, Any]
) -> None:
    """Write a part of an index. Indexes of earlier weights of the retriever are deleted.

    Raises:
        OSError: the folder of the retriever is read-only.
    """
    folder = sources.folder(retriever)
    for other in folder.parent.glob(f"*/{CARD}"):
        if _weights_of(other) != sources.weights:
            shutil.rmtree(other.parent, ignore_errors=True)
    write_json(folder / CARD, {"format": FORMAT, **asdict(sources)})
    write_array(folder / f"{name}.npy", np.ascontiguousarray(vectors, np.float32))
    write_table(folder / f"{name}.parquet", pa.table(dict(columns)))


def _weights_of(card: Path) -> object:
    """The digest of the weights; None for a damaged card."""
    try:
        content = read_json(card)
    except UserError:
        return None
    return content.get("weights") if isinstance(content, dict) else None
