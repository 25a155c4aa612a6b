"""Small sealed stores, of arrays and without an encoder; and models that are trained on stores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import vitcapr
from vitcapr.store.layout import ArrayLayout
from vitcapr.store.sealing import write_sealed
from vitcapr.store.writer import StoreWriter, fingerprint_of, store_folder

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


def write_noise_store(root: Path, sealed: str = "sealed/manifest.json") -> Path:
    """A store of 11 images in three chunks of two arrays."""
    draw = np.random.default_rng(0)
    shapes = {"patches": (11, 4, 8), "cls": (11, 8)}
    arrays = {name: draw.normal(size=shape).astype(np.float16) for name, shape in shapes.items()}
    recipe: dict[str, object] = {"backbone": "noise", "revision": None, "grid": [2, 2]}
    recipe["fingerprint"] = fingerprint_of(recipe)
    return write_store(root, arrays, [f"{row}_ä" for row in range(11)], chunk=4, sealed=sealed, **recipe)


def train(kind: str, features: Path, output: Path, files: Mapping[str, Any] | None = None, **settings: Any) -> Path:
    """Train a captioner or a retriever on the data set ``results/toy``, to the folder ``output``.

    Args:
        features: a folder of features, or their manifest.
        files: other files of the stage; ``text`` is the folder of the words.
    """
    others = {"text": "results/toy/text", **(files or {})}
    text = Path(others.pop("text"))
    words = {"vocabulary": text / "vocabulary.json", "tokens": text / "tokens.npz", "manifest": "results/toy/data"}
    backbone = (features.parent if features.suffix else features).name
    model = {kind: {"backbone": backbone, **settings}}
    vitcapr.run(f"train_{kind}", model, features=features, **words, **others, **{kind: output})
    return output
