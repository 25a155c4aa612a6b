"""A feature store as a dataset of Hugging Face."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.store.reader import FeatureArray, FeatureStore, QuantisedArray, open_features

if TYPE_CHECKING:
    from datasets import Dataset


def to_datasets(
    store: str | Path | FeatureStore, captions: str | Path | Manifest | None = None, split: str | None = None
) -> "Dataset":
    """Return a store as a ``datasets.Dataset``: ``id``, every array, and with ``captions`` the texts of each image.

    The columns are the memory maps of the chunk files; nothing is copied or written.

    Examples:
        >>> vitcapr.to_datasets("results/demo/features/vit").with_format("torch")[:8]["cls"]  # doctest: +SKIP

    Args:
        store: the manifest of the features, its folder, or an open store.
        captions: the data set of the images: its manifest, or the folder of it.
        split: keep the images of this split; it needs ``captions``.

    Raises:
        UserError: the extra ``datasets`` is missing, the store is of int8, or it is not of these images.
    """
    try:
        import datasets
        import pyarrow
    except ImportError as error:
        raise UserError("datasets is not installed", remedy="pip install 'vitcapr[datasets]'") from error
    opened = store if isinstance(store, FeatureStore) else open_features(store)
    columns: dict[str, Any] = {"id": pyarrow.array(opened.ids)}
    columns |= {name: _column(name, array, opened) for name, array in opened.items()}
    rows = None
    if captions is not None:
        data = captions if isinstance(captions, Manifest) else read_manifest(captions)
        opened.check_rows("image_id", data)
        texts: list[list[str]] = [[] for _ in opened.ids]
        for image, text in data.captions_of(split)[["image_row", "text"]].itertuples(index=False):
            texts[image].append(text)
        columns["captions"] = pyarrow.array(texts, pyarrow.list_(pyarrow.string()))
        rows = None if split is None else data.rows(split)
    elif split is not None:
        raise UserError(f"which images are in the split '{split}'?", remedy="give the data set: captions=...")
    dataset = datasets.Dataset(datasets.table.InMemoryTable(pyarrow.table(columns)))
    return dataset if rows is None else dataset.select(rows)


def _column(name: str, array: FeatureArray, store: FeatureStore) -> Any:
    """Return an array as a column of nested lists over the chunk files, each list of fixed length."""
    import pyarrow

    if isinstance(array, QuantisedArray):
        what = f"'{name}' is stored in eight bits, and Arrow has no such numbers with a scale"
        raise UserError(what, where=store.path, remedy="read it with vitcapr.torch.FeatureDataset")
    number, sizes = pyarrow.from_numpy_dtype(array.stored), array.shape[1:]
    kind = number
    for size in reversed(sizes):
        kind = pyarrow.list_(kind, size)

    def nested(chunk: np.ndarray) -> Any:
        flat = chunk.reshape(-1)
        column = pyarrow.Array.from_buffers(number, flat.size, [None, pyarrow.py_buffer(flat)])
        for size in reversed(sizes):
            column = pyarrow.FixedSizeListArray.from_arrays(column, size)
        return column

    return pyarrow.chunked_array([nested(array.chunk_view(index)) for index in range(array.chunks)], kind)
