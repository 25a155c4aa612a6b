"""``embeddings.npz`` of a split, the search index of a retriever, and weights selected with them."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from vitcapr.errors import UserError
from vitcapr.files import canonical_json, sha256_bytes, write_json
from vitcapr.formats.containers import read_arrays, read_parquet, write_array, write_arrays, write_table
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.records import JsonRecord, reading

Rows = npt.NDArray[np.int32]
_KINDS = {
    "images": np.float32,
    "captions": np.float32,
    "image_row": np.integer,
    "caption_row": np.integer,
    "caption_image": np.integer,
}


class Embeddings(NamedTuple):
    """N images and M captions of a split as unit vectors, so that a product is a cosine.

    Attributes:
        images: (N, E) float32.
        captions: (M, E) float32.
        image_row: (N,) int32, rows of images.parquet.
        caption_row: (M,) int32, rows of captions.parquet.
        caption_image: (M,) int32, the place among ``images`` of each caption's image; never decreasing.
    """

    images: npt.NDArray[np.float32]
    captions: npt.NDArray[np.float32]
    image_row: Rows
    caption_row: Rows
    caption_image: Rows


def write_embeddings(path: Path, embeddings: Embeddings) -> None:
    """Write the embeddings; the same embeddings give the same bytes."""
    rows = {name: np.asarray(getattr(embeddings, name), np.int32) for name in Embeddings._fields[2:]}
    write_arrays(path, {"images": embeddings.images, "captions": embeddings.captions, **rows})


def read_embeddings(path: Path, data: Manifest | None = None, split: str | None = None) -> Embeddings:
    """Return the embeddings of the images and captions of ``data``, and of its split, where these are given."""
    what, remedy = "the embeddings of a split", "run the embed stage"
    embeddings = Embeddings(**read_arrays(path, _KINDS, what, remedy))
    images, captions, image_row, caption_row, caption_image = embeddings
    with reading(path, what, remedy):
        if images.shape[1:] != captions.shape[1:] or not len(images) or not len(captions):
            raise ValueError(f"images {images.shape} and captions {captions.shape} are not of one space")
        if len(image_row) != len(images) or not len(caption_row) == len(caption_image) == len(captions):
            raise ValueError(f"{len(image_row)} and {len(caption_row)} rows for {images.shape} and {captions.shape}")
        if not np.isfinite(images).all() or not np.isfinite(captions).all():
            raise ValueError("an embedding is not finite")
    if data is not None:
        owner = data.caption_table.column("image_row").to_numpy()
        if caption_row.max() >= len(owner) or (owner[caption_row] != image_row[caption_image]).any():
            raise UserError("embeddings of another data set", where=path, remedy="embed the data set of the manifest")
        if split is not None and set(data.image_table.column("split").iloc[image_row]) != {split}:
            raise UserError(f"these are not embeddings of the split {split}", where=path)
    return embeddings


FORMAT = "vitcapr-search-index-1"
FOLDER, CARD = "search", "index.json"


@dataclass(frozen=True)
class IndexSources:
    """Sources of the embeddings of an index.

    Attributes:
        weights: digest of the retriever's weights.
        features: fingerprints of the stores: of the backbone, then of the augmented views.
        manifest: digest of the data set's manifest.json.
    """

    weights: str
    features: tuple[str, ...]
    manifest: str

    def folder(self, retriever: Path) -> Path:
        """Return the folder of the index of these sources."""
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
        """Return the rows with these numbers, in their order."""
        rows: list[dict[str, Any]] = self.table.take(pa.array(numbers, pa.int64())).to_pylist()
        return rows


def read_part(folder: Path, name: str) -> IndexPart | None:
    """Return a part of an index; None if it is not there, or not whole."""
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
    for card in folder.parent.glob(f"*/{CARD}"):
        if sources.weights not in card.read_text(encoding="utf-8", errors="replace"):
            shutil.rmtree(card.parent, ignore_errors=True)
    write_json(folder / CARD, {"format": FORMAT, **asdict(sources)})
    write_array(folder / f"{name}.npy", np.ascontiguousarray(vectors, np.float32))
    write_table(folder / f"{name}.parquet", pa.table(dict(columns)))


@dataclass(frozen=True)
class ChosenWeight(JsonRecord):
    """The fields of every weight; a stage adds its own."""

    KIND: ClassVar[str] = "a weight"

    weight: Annotated[float, Field(ge=0, le=1)]
    curve: list[dict[str, float]]
    """A row for everything that was tried: ``weight``, what else was varied, and what came of it."""


@dataclass(frozen=True)
class RerankingWeight(ChosenWeight):
    """The weight of a retriever in reranking, and the conditions under which it means something."""

    FORMAT: ClassVar[str] = "vitcapr-reranking-weight-1"
    REMEDY: ClassVar[str] = "run tune_reranking"

    length_penalty: Annotated[float, Field(ge=0)]
    decoded: float
    """CIDEr of the captions as they were decoded, before any reranking."""
    retriever: str
    """sha256 of the weights of the retriever."""
    protocol: str
    alpha: Annotated[float, Field(ge=0)] = 0.0
    """The exponent of the blind likelihood."""
    language_model: dict[str, str] | None = None
    """``source`` and ``revision`` of the language model that sees no image."""


@dataclass(frozen=True)
class QueryBankWeight(ChosenWeight):
    """The weight of a query bank in the correction of scores for hubness."""

    FORMAT: ClassVar[str] = "vitcapr-query-bank-1"
    REMEDY: ClassVar[str] = "run weigh_query_bank"

    inverse_temperature: Annotated[float, Field(gt=0)]
    images: Annotated[int, Field(ge=1)]
    """In the bank."""
    captions: Annotated[int, Field(ge=1)]
    chosen_by: str

    @property
    def protocol(self) -> str:
        """The part of a protocol that describes the correction of the scores."""
        bank = f"train {self.images}images {self.captions}captions"
        return (
            f"query-bank:{bank},inverse-temperature={self.inverse_temperature:g},weight={self.weight:g} "
            f"chosen on validation"
        )
