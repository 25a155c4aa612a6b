"""Small sealed stores, of arrays and without an encoder."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vitcapr.store.layout import ArrayLayout
from vitcapr.store.seal import write_sealed
from vitcapr.store.writer import StoreWriter, store_folder

_AXES = {2: ["channel"], 3: ["patch", "channel"]}


def write_store(
    root: Path,
    arrays: Mapping[str, np.ndarray],
    ids: list[str],
    identity: str = "image_id",
    chunk: int = 20,
    sealed: str = "sealed/manifest.json",
    **attributes: object,
) -> Path:
    """A sealed store of ``arrays`` in ``root/stores``: the path of its manifest."""
    attributes = {"fingerprint": {"image_id": "c", "caption_id": "e"}[identity] * 64, **attributes}
    layout = {
        name: ArrayLayout(rows.shape, chunk, rows.dtype.name, (identity.removesuffix("_id"), *_AXES[rows.ndim]))
        for name, rows in arrays.items()
    }
    writer = StoreWriter(store_folder(root / "stores", str(attributes["fingerprint"])), layout)
    writer.begin({"imported": {"kind": "test"}, **attributes})
    for number in writer.chunks:
        rows = {name: values[number * chunk : (number + 1) * chunk] for name, values in arrays.items()}
        empty = chunk - len(next(iter(rows.values())))
        padded = {name: np.pad(block, [(0, empty), *[(0, 0)] * (block.ndim - 1)]) for name, block in rows.items()}
        writer.write(number, padded)
    write_sealed(writer, [ids], identity, root / sealed)
    return root / sealed
