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
from vitcapr.files import canonical_json, read_json, sha256_bytes, write_json
from vitcapr.formats.containers import JsonRecord, read_arrays, read_parquet, write_array, write_arrays, write_table
from vitcapr.formats.manifest import Manifest

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
    """The same embeddings give the same bytes."""
    rows = {name: np.asarray(getattr(embeddings, name), np.int32) for name in Embeddings._fields[2:]}
    write_arrays(path, {"images": embeddings.images, "captions": embeddings.captions, **rows})


def read_embeddings(path: Path) -> Embeddings:
    """Raises:
    UserError: the file is missing, holds no embeddings, or its arrays do not fit.
    """
    what, remedy = "the embeddings of a split", "run the embed stage"
    found = Embeddings(**read_arrays(path, _KINDS, what, remedy))
    try:
        _check_embeddings(found)
    except ValueError as error:
        raise UserError(f"not {what}: {error}", where=path, remedy=f"{remedy} again") from error
    return found


def read_embeddings_of(path: Path, data: Manifest) -> Embeddings:
    """The embeddings of images and captions of ``data``.

    Raises:
        UserError: as :func:`read_embeddings`, or the embeddings are of another data set.
    """
    found = read_embeddings(path)
    owner = data.rows_of(data.captions["image_id"].tolist())
    rows = found.caption_row
    if rows.max() >= len(owner) or (owner[rows] != found.image_row[found.caption_image]).any():
        raise UserError("embeddings of another data set", where=path, remedy="embed the data set of the manifest")
    return found


def read_split_embeddings(path: Path, data: Manifest, split: str) -> Embeddings:
    """The embeddings of the images and captions of a split of ``data``.

    Raises:
        UserError: as :func:`read_embeddings_of`, or the embeddings are of another split.
    """
    found = read_embeddings_of(path, data)
    if set(data.images["split"].iloc[found.image_row]) != {split}:
        raise UserError(f"these are not embeddings of the split {split}", where=path)
    return found


def _check_embeddings(found: Embeddings) -> None:
    images, captions = found.images.shape, found.captions.shape
    if len(images) != 2 or len(captions) != 2 or images[1] != captions[1]:
        raise ValueError(f"images {images} and captions {captions} are not of one space")
    if found.image_row.shape != images[:1]:
        raise ValueError(f"rows {found.image_row.shape} for {images[0]} images")
    for rows in (found.caption_row, found.caption_image):
        if rows.shape != captions[:1]:
            raise ValueError(f"rows {rows.shape} for {captions[0]} captions")
    if not images[0] or not captions[0]:
        raise ValueError(f"{images[0]} images and {captions[0]} captions")
    if found.image_row.min() < 0 or found.caption_row.min() < 0:
        raise ValueError("a row is negative")
    if found.caption_image.min() < 0 or found.caption_image.max() >= images[0]:
        raise ValueError("a caption belongs to no image")
    if (np.diff(found.caption_image) < 0).any():
        raise ValueError("the captions are not in the order of the images")
    odd = sum(int((~np.isfinite(vectors).all(axis=1)).sum()) for vectors in (found.images, found.captions))
    if odd:
        raise ValueError(f"{odd} embeddings are not finite")


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
    select_by: str
    """The score that decided."""
    decoded: float
    """That score of the captions as they were decoded, before any reranking."""
    retriever: str
    """sha256 of the weights of the retriever."""
    protocol: str


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
