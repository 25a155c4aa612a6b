"""A trained retriever for new images and sentences, and for searches in the images of its experiment.

The module does not import torch: a mistake is found without it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vitcapr.api.model_files import ModelFiles
from vitcapr.api.published_model import find_model
from vitcapr.api.trained_captioner import BATCH, Device
from vitcapr.data.photographs import ImageLike, as_list, open_image
from vitcapr.encoders.loading import one_at_a_time
from vitcapr.errors import UserError
from vitcapr.files import read_json, sha256_file
from vitcapr.formats.image_root import read_image_root
from vitcapr.formats.store_manifest import read_sealed

if TYPE_CHECKING:
    import pandas as pd

    from vitcapr.encoders.image_recipe import PhotographEncoder
    from vitcapr.formats.embeddings import IndexPart
    from vitcapr.formats.manifest import Manifest
    from vitcapr.progress import Reporter
    from vitcapr.retrieval.embedder import Embedder, Retriever

Part = Literal["images", "captions"]


@dataclass
class TrainedRetriever:
    """A trained retriever with all that it needs; made by :func:`load_retriever`. Weights are loaded at first use.

    Attributes:
        files: the folder of the retriever and what belongs to it.
        manifest: ``manifest.json`` of the data set that is searched.
        stores: manifests of the features: of the backbone, then of the augmented views.
        text_encoder, backbone: hub id or folder given by the user; None: as in the experiment.
        reporter: where progress is written; None for nowhere.
    """

    files: ModelFiles
    device: Device
    vocabulary: Path
    stores: Sequence[Path]
    manifest: Path
    text_encoder: str | None
    backbone: str | None
    reporter: "Reporter | None"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle what names the files. The models are loaded again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def folder(self) -> Path:
        return self.files.folder

    @one_at_a_time
    def embed_images(self, images: ImageLike) -> np.ndarray:
        """Photographs of any size in the space that images and texts share: (n, E) float32, unit length.

        Args:
            images: as for :meth:`TrainedCaptioner.caption`.

        Raises:
            UserError: a file is no usable picture.
        """
        import torch

        photographs, model = as_list(images), self._opened.model
        vectors = [np.empty((0, model.embedding_dim), np.float32)]
        for first in range(0, len(photographs), BATCH):
            pictures = [open_image(one) for one in photographs[first : first + BATCH]]
            by_view = []
            for encoder in self._encoders:
                features = encoder.encode(pictures)
                by_view.append({name: features[name] for name in model.image_arrays})
            with torch.inference_mode():
                vectors.append(np.asarray(model.embed_augmented_views(by_view).cpu()))
        return np.concatenate(vectors)

    @one_at_a_time
    def embed_texts(self, texts: str | Sequence[str]) -> np.ndarray:
        """Sentences in the space that images and texts share: (n, E) float32, unit length."""
        return self._opened.text_embedder.embed([texts] if isinstance(texts, str) else list(texts))

    def search(
        self,
        text: str | None = None,
        *,
        image: ImageLike | None = None,
        k: int = 10,
        split: str | None = None,
    ) -> "pd.DataFrame":
        """Return the ``k`` images of the data set nearest to a sentence or an image, one a row, the nearest first.

        The embeddings of the data set are computed at the first search and kept in the folder of the retriever.

        Args:
            text, image: the query, one of the two.
            split: search only this split.

        Raises:
            UserError: the query is missing, or the split does not exist.
        """
        if k < 1:
            raise UserError(f"k is {k}", remedy="ask for at least 1 image")
        return self.nearest("images", self.query(text, image), k, split)

    def unknown_words(self, text: str) -> list[str]:
        """Return the words of a query that the retriever did not learn; none if it reads sentence features."""
        from vitcapr.text.normalise import words_of

        known = self._opened.words
        if known is None or self._opened.model.reads == "features":
            return []
        return [word for word in words_of(text, **known.recipe["normalise"]) if word not in known.words]

    def query(self, text: str | None, image: ImageLike | None) -> np.ndarray:
        """Return the embedding (1, E) of a sentence or of an image.

        Raises:
            UserError: neither or both are given, or the sentence is empty.
        """
        if (text is None) == (image is None) or text == "":
            raise UserError("a search is for words or for an image", remedy="give one of them")
        return self.embed_texts(text) if text is not None else self.embed_images([image] if image is not None else [])

    @property
    def image_root(self) -> Path:
        """The folder or zip that the paths of found images are relative to."""
        return read_image_root(self.manifest.parent, read_json(self.manifest))

    @cached_property
    @one_at_a_time
    def _opened(self) -> "Retriever":
        from vitcapr.encoders.devices import resolve_device
        from vitcapr.retrieval.embedder import open_retriever

        self.files.check_architecture()
        device = resolve_device(self.device)
        return open_retriever(self.folder, vocabulary=self.vocabulary, device=device, text_encoder=self.text_encoder)

    @cached_property
    @one_at_a_time
    def _encoders(self) -> "list[PhotographEncoder]":
        """Encoders, one for each view of a photograph."""
        return self.files.encoders(self.stores, self._opened.device, self.backbone)

    @one_at_a_time
    def nearest(self, part: Part, query: np.ndarray, k: int, split: str | None = None) -> "pd.DataFrame":
        """Return the ``k`` images or captions nearest to a query (1, E), with ``rank`` and ``cosine``."""
        import pandas as pd

        from vitcapr.retrieval.nearest import nearest

        embedded = self._images if part == "images" else self._captions
        rows = None
        if split is not None:
            splits = embedded.column("split")
            rows = np.flatnonzero(splits == split)
            if not len(rows):
                known = ", ".join(sorted(set(splits.tolist())))
                raise UserError(f"no image is in the split '{split}'", remedy=f"the splits are {known}")
        cosines, numbers = nearest(query, embedded.vectors, k, rows)
        nearest_rows = enumerate(zip(cosines[0].tolist(), embedded.rows(numbers[0].tolist()), strict=True), 1)
        columns = ["rank", "cosine", *embedded.table.column_names]
        return pd.DataFrame(
            [{"rank": rank, "cosine": cosine, **row} for rank, (cosine, row) in nearest_rows], columns=columns
        )

    @cached_property
    def _images(self) -> "IndexPart":
        return self._kept("images", self._embed_images)

    @cached_property
    def _captions(self) -> "IndexPart":
        return self._kept("captions", self._embed_captions)

    def _kept(self, name: Part, embed: Callable[[], tuple[np.ndarray, dict[str, Any]]]) -> "IndexPart":
        """Return the embeddings of the data set. They are stored beside the retriever if its folder is writable."""
        from vitcapr.formats.embeddings import IndexPart, IndexSources, read_part, write_part

        fingerprints = tuple(str(read_sealed(path)["fingerprint"]) for path in self.stores)
        sources = IndexSources(self.files.card["weights_sha256"], fingerprints, sha256_file(self.manifest))
        folder = sources.folder(self.folder)
        part = read_part(folder, name)
        if part is None:
            vectors, columns = embed()
            try:
                write_part(self.folder, sources, name, vectors, columns)
            except (OSError, UserError):
                import pyarrow as pa

                return IndexPart(vectors, pa.table(columns))
            part = read_part(folder, name)
            assert part is not None
        return part

    def _embed_images(self) -> tuple[np.ndarray, dict[str, Any]]:
        """Vectors, and the columns of the table of their rows."""
        from vitcapr.retrieval.embedder import open_augmented_views

        data, retriever = self._data, self._opened
        views = self.stores[1:]
        stores = open_augmented_views(data, retriever.augmented_views, self.stores[0], views, retriever.layer)
        vectors = self._embedded(retriever.image_embedder(*stores), np.arange(len(data.images)), "images")
        first = data.captions.drop_duplicates("image_id").set_index("image_id")["text"]
        captions = first.reindex(data.images["image_id"]).fillna("")
        columns = {name: data.images[name].tolist() for name in ("image_id", "path", "split")}
        return vectors, {**columns, "caption": captions.tolist()}

    def _embed_captions(self) -> tuple[np.ndarray, dict[str, Any]]:
        """Return the same of the captions in the retriever's language."""
        data, retriever = self._data, self._opened
        table = data.captions_of(None, retriever.language)
        embedder = retriever.caption_embedder(data, self.files.text_features)
        vectors = self._embedded(embedder, table["caption_row"].to_numpy(), "captions")
        paths = data.images["path"].iloc[table["image_row"]].tolist()
        return vectors, {"text": table["text"].tolist(), "path": paths, "split": table["split"].tolist()}

    @cached_property
    def _data(self) -> "Manifest":
        from vitcapr.formats.manifest import read_manifest

        return read_manifest(self.manifest)

    def _embedded(self, embedder: "Embedder", rows: np.ndarray, unit: str) -> np.ndarray:
        if self.reporter is None:
            return embedder.embed(rows)
        with self.reporter.track("embed", len(rows), unit) as tracker:
            return embedder.embed(rows, advance=tracker.advance)


def load_retriever(
    folder: str | Path | None = None,
    *,
    device: Device = "auto",
    features: str | Path | None = None,
    manifest: str | Path | None = None,
    text_encoder: str | None = None,
    backbone: str | None = None,
    reporter: "Reporter | None" = None,
) -> TrainedRetriever:
    """Return a trained retriever, with the data set and the features of its experiment.

    Examples:
        >>> retriever = vitcapr.load_retriever("results/demo/retrievers/recommended")  # doctest: +SKIP
        >>> retriever.search("two large red boats on the water", k=3)[["cosine", "path"]]  # doctest: +SKIP

    Args:
        folder: of the retriever, or of an experiment that has only one; None if ``results/`` holds only one.
        device: the device: auto, cpu or cuda.
        features: the manifest.json of the image features to search, if not the experiment's own.
        manifest: the manifest.json of the data set to search, if not the experiment's own.
        text_encoder: hub id or folder of the text encoder, if not found by its name.
        backbone: hub id or folder of the backbone, if not found by its name.
        reporter: where progress is written; None for nowhere.

    Raises:
        UserError: something is missing or does not belong to the retriever.
    """
    files = find_model(folder, "retriever")
    return TrainedRetriever(
        files,
        device,
        files.vocabulary,
        files.stores(features),
        files.file("data/manifest.json", "manifest", manifest),
        text_encoder,
        backbone,
        reporter,
    )
