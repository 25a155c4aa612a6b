"""The embeddings of a data set's images and captions by a retriever: computed once, kept beside the retriever."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.formats.embeddings import FAISS, IndexPart, IndexSources, read_part, write_part
from vitcapr.retrieval.search import nearest, nearest_by_faiss, write_faiss

if TYPE_CHECKING:
    from vitcapr.formats.manifest import Manifest
    from vitcapr.progress import Reporter
    from vitcapr.retrieval.embedder import Embedder, Retriever

EmbeddedRows = tuple[np.ndarray, dict[str, Any]]
"""Vectors, and the columns of the table of their rows."""


@dataclass(frozen=True)
class Searchable:
    """The images or the captions of a data set.

    Attributes:
        faiss: the file of faiss' index; None if nothing can be kept.
    """

    part: IndexPart
    faiss: Path | None = None

    def search(self, query: np.ndarray, k: int, split: str | None = None, index: str = "exact") -> list[dict[str, Any]]:
        """The rows nearest to the query (1, E), each with its ``cosine``, the nearest first.

        Raises:
            UserError: there is no such split, or faiss is not installed.
        """
        rows = None if split is None else self._rows_of(split)
        if index == "faiss":
            if self.faiss is None:
                raise UserError(
                    "the index of faiss cannot be kept",
                    remedy="make the retriever's folder writable, or search exactly",
                )
            if not self.faiss.is_file():
                write_faiss(self.faiss, self.part.vectors)
            cosines, numbers = nearest_by_faiss(self.faiss, query, k, rows)
        else:
            cosines, numbers = nearest(query, self.part.vectors, k, rows)
        found = self.part.rows(numbers[0].tolist())
        return [{"cosine": cosine, **row} for cosine, row in zip(cosines[0].tolist(), found, strict=True)]

    def _rows_of(self, split: str) -> np.ndarray:
        of_rows = self.part.column("split")
        rows = np.flatnonzero(of_rows == split)
        if not len(rows):
            known = ", ".join(sorted(set(of_rows.tolist())))
            raise UserError(f"no image is in the split '{split}'", remedy=f"the splits are {known}")
        return rows


@dataclass(frozen=True)
class KeptEmbeddings:
    """The kept embeddings of one retriever for one data set.

    Attributes:
        folder: of the retriever.
        weights, fingerprints, manifest_digest: what the embeddings depend on.
        stores: manifests of the features: of the backbone, then of the augmented views.
        text_features: finds the manifest of the text features, for a retriever that reads them.
        opened: gives the retriever with its weights, for rows that are not kept yet.
        reporter: where progress is written; None for nowhere.
    """

    folder: Path
    weights: str
    fingerprints: tuple[str, ...]
    manifest: Path
    manifest_digest: str
    stores: Sequence[Path]
    text_features: Callable[[], Path]
    opened: "Callable[[], Retriever]"
    reporter: "Reporter | None"

    @cached_property
    def images(self) -> Searchable:
        return self._searchable("images", self._embed_images)

    @cached_property
    def captions(self) -> Searchable:
        return self._searchable("captions", self._embed_captions)

    def _searchable(self, name: str, embed: Callable[[], EmbeddedRows]) -> Searchable:
        sources = IndexSources(self.weights, self.fingerprints, self.manifest_digest)
        folder = sources.folder(self.folder)
        part = read_part(folder, name)
        if part is None:
            vectors, columns = embed()
            try:
                write_part(self.folder, sources, name, vectors, columns)
            except (OSError, UserError):  # A read-only folder or a full disk: the search goes on without keeping them.
                import pyarrow as pa

                return Searchable(IndexPart(vectors, pa.table(columns)))
            part = read_part(folder, name)
            assert part is not None
        return Searchable(part, folder / FAISS if name == "images" else None)

    @cached_property
    def _data(self) -> "Manifest":
        from vitcapr.formats.manifest import read_manifest

        return read_manifest(self.manifest)

    def _embed_images(self) -> EmbeddedRows:
        from vitcapr.retrieval.augmented_views import open_augmented_views

        data, retriever = self._data, self.opened()
        stores = open_augmented_views(data, retriever.augmented_views, self.stores[0], self.stores[1:], retriever.layer)
        vectors = self._embedded(retriever.image_embedder(*stores), np.arange(len(data.images)), "images")
        first = data.captions.drop_duplicates("image_id").set_index("image_id")["text"]
        captions = first.reindex(data.images["image_id"]).fillna("")
        columns = {name: data.images[name].tolist() for name in ("image_id", "path", "split")}
        return vectors, {**columns, "caption": captions.tolist()}

    def _embed_captions(self) -> EmbeddedRows:
        """The captions in the retriever's language."""
        data, retriever = self._data, self.opened()
        table = data.captions_of(None, retriever.words.recipe["language"])
        features = None if retriever.model.reads == "tokens" else self.text_features()
        embedder = retriever.caption_embedder(data, features)
        vectors = self._embedded(embedder, table["caption_row"].to_numpy(), "captions")
        paths = data.images["path"].iloc[table["image_row"]].tolist()
        return vectors, {"text": table["text"].tolist(), "path": paths, "split": table["split"].tolist()}

    def _embedded(self, embedder: "Embedder[Any]", rows: np.ndarray, unit: str) -> np.ndarray:
        if self.reporter is None:
            return embedder.embed(rows)
        with self.reporter.track("embed", len(rows), unit) as tracker:
            return embedder.embed(rows, advance=tracker.advance)
