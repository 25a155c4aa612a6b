"""The sealed feature store: a plain Zarr v3 group whose chunk files are read directly.

A chunk holds whole images, is not compressed and is written whole, so its file *is* a little-endian C-order array.
Any Zarr reader opens the group; this one copies rows out of memory maps of the chunk files. It never keeps the store in
memory.
"""

import re
from collections.abc import Iterator, Mapping
from copy import copy
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from vitcapr.errors import UserError
from vitcapr.formats.store_manifest import SCALE, arrays_of_layer, read_sealed, store_group
from vitcapr.store.check import check_store, read_ids, repair
from vitcapr.store.layout import ArrayLayout, Rows, chunk_path, identity_in, layouts_in

if TYPE_CHECKING:
    from torch import Tensor

    from vitcapr.formats.manifest import Manifest

_OF_A_LAYER = re.compile(r"(?:cls|patches)_([1-9][0-9]*)")
_MOST_MAPS = 16_384
"""Chunk files of an array that stay mapped: Linux allows a process 65,530 maps."""


class FeatureArray:
    """One array of a store, ``(N, ...)``, read from its chunk files as rows are asked for.

    ``array[3]``, ``array[10:20]`` and ``array[[5, 2, 2]]`` give NumPy arrays, as NumPy would; ``np.asarray(array)``
    reads it all. Lists for two axes at once are refused.
    """

    def __init__(self, directory: Path, layout: ArrayLayout) -> None:
        """Open the chunk files in the array's folder of the Zarr group.

        ``stored`` is the dtype of the numbers on disk, ``dtype`` that of the numbers read.
        """
        self.directory, self.layout, self.shape, self.chunk = directory, layout, layout.shape, layout.chunk
        self.dtype = self.stored = np.dtype(layout.dtype).newbyteorder("<")
        self.row_bytes = layout.chunk_bytes // layout.chunk
        self.chunks = layout.chunks
        self._keep_maps()

    def _keep_maps(self) -> None:
        self._tensor = lru_cache(_MOST_MAPS)(self._map)
        self._mapped = lru_cache(_MOST_MAPS)(self._read_only)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_tensor", "_mapped")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._keep_maps()

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        return self.shape[0] * self.row_bytes

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"FeatureArray({self.directory.name}, shape={self.shape}, dtype={self.dtype}, chunk={self.chunk})"

    def chunk_path(self, index: int) -> Path:
        return chunk_path(self.directory, index, self.ndim)

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the array, in the order asked for.

        Args:
            rows: (n,) integers from 0 to N-1; any order, repetitions allowed.

        Returns:
            (n, ...) array of this array's dtype, a copy.

        Raises:
            IndexError: a row is not in the array.
            UserError: a chunk is missing or cut short.
        """
        rows = np.asarray(rows)
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise IndexError(f"rows must be a vector of integers, not {rows.dtype} of shape {rows.shape}")
        rows = rows.astype(np.intp, copy=False)
        outside = rows[(rows < 0) | (rows >= len(self))]
        if outside.size:
            raise IndexError(f"row {outside[0]} of an array of {len(self)} rows")
        out = np.empty((rows.size, *self.shape[1:]), self.stored)
        for at, row in enumerate(rows.tolist()):
            out[at] = self._mapped(row // self.chunk)[row % self.chunk]
        return out

    def view(self, row: int) -> "Tensor":
        """Return a row as a tensor in the memory map of its chunk. It is not a copy: do not write to it."""
        return self._tensor(row // self.chunk)[row % self.chunk]

    def chunk_view(self, index: int) -> np.ndarray:
        """Return the stored rows of a chunk in the memory map of its file, read-only."""
        return self._mapped(index)[: len(self) - index * self.chunk]

    def _read_only(self, index: int) -> np.ndarray:
        content = self._tensor(index).numpy()
        content.flags.writeable = False
        return content

    def _map(self, index: int) -> "Tensor":
        """Return a chunk, mapped."""
        import torch

        path, size = self.chunk_path(index), self.layout.chunk_bytes
        if not path.is_file() or path.stat().st_size < size:
            state = "cut short" if path.is_file() else "missing"
            what = f"a chunk of the feature store is {state}"
            raise UserError(what, where=path, remedy=repair([self.directory.name]))
        # Python's mmap and numpy.memmap keep a descriptor for each map; a process may have 1,024 of them.
        content = torch.from_file(str(path), shared=False, size=size, dtype=torch.uint8)
        return content.view(getattr(torch, self.layout.dtype)).view(self.chunk, *self.shape[1:])

    def __getitem__(self, key: Any) -> np.ndarray:
        first, *rest = key if isinstance(key, tuple) else (key,)
        if any(isinstance(one, bool | np.bool_) for one in (first, *rest)):
            raise IndexError("an index is a number, a slice or a list, not True or False")
        lists = [one for one in (first, *rest) if np.ndim(one) and not isinstance(one, slice)]
        if len(lists) > 1:
            what = "NumPy reads lists for two axes in pairs, and h5py as a grid"
            raise IndexError(f"{what}: give one, and index the result, array[rows][:, columns]")
        if first is Ellipsis:
            return np.asarray(np.asarray(self)[key])
        whole = range(len(self)) if isinstance(first, int) else np.arange(len(self))
        rows = np.asarray(whole[first])
        return self.gather(rows[None])[(0, *rest)] if rows.ndim == 0 else self.gather(rows)[(slice(None), *rest)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("a feature array is on disk; it cannot become an array in memory without a copy")
        whole = self.gather(np.arange(len(self)))
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def close(self) -> None:
        """Let go of the files: they are unmapped once no thread reads from them. The array can be read again."""
        self._mapped.cache_clear()
        self._tensor.cache_clear()


class QuantisedArray(FeatureArray):
    """An array of ``store_dtype: int8`` with its scales. ``stored`` is int8, ``dtype`` float16."""

    def __init__(self, steps: FeatureArray, scale: FeatureArray) -> None:
        super().__init__(steps.directory, steps.layout)
        self.dtype, self._scale = np.dtype(np.float16), scale

    def gather(self, rows: np.ndarray) -> np.ndarray:
        """Gather rows like :meth:`FeatureArray.gather`, each by :func:`~vitcapr.formats.int8.dequantise`."""
        import torch

        from vitcapr.formats.int8 import dequantise

        steps, scale = torch.from_numpy(super().gather(rows)), torch.from_numpy(self._scale.gather(rows))
        return np.asarray(dequantise(steps, scale).numpy())

    def view(self, row: int) -> "Tensor":
        """Return a row as a tensor of its own; the stored numbers are not the features."""
        import torch

        return torch.from_numpy(self.gather(np.array([row]))[0])

    def close(self) -> None:
        super().close()
        self._scale.close()


class MissingArray(UserError, KeyError):
    """A store does not have the array."""


class FeatureStore(Mapping[str, FeatureArray]):
    """A sealed store, its structure checked; made by :func:`open_features`.

    ``store["patches"]`` is ``(N, P, D)`` and ``store["cls"]`` ``(N, D)``; rows are those of ``images.parquet``.
    A store of captions has ``store["text"]``, ``(M, D)``; its rows are those of ``captions.parquet``.

    Attributes:
        arrays: the arrays by name.
        attributes: backbone, revision, weights digest, preprocessing, arithmetic: where the numbers come from.
        grid: rows and columns of patches; patch ``p`` is at row ``p // grid[1]``, column ``p % grid[1]``. Nought by
            nought in a store of captions.
        identity: what a row is, ``image_id`` or ``caption_id``.
        fingerprint: sha256 of everything that decides the numbers.
        partial: some of the arrays are elsewhere.
        path: the Zarr group.
        manifest_path: the sealed manifest.
    """

    def __init__(self, manifest_path: Path, manifest: Mapping[str, Any]) -> None:
        self.manifest_path = manifest_path
        self.path = store_group(manifest_path, manifest)
        self.fingerprint: str = manifest["fingerprint"]
        self.attributes: dict[str, Any] = manifest["attributes"]
        rows, columns = manifest.get("grid", (0, 0))
        self.grid: tuple[int, int] = (rows, columns)
        self.chunk: int = manifest["chunk"]
        self.partial: bool = manifest.get("partial", False)
        arrays = {name: FeatureArray(self.path / name, layout) for name, layout in layouts_in(manifest).items()}
        self.arrays: dict[str, FeatureArray] = {
            name: QuantisedArray(array, arrays[name + SCALE]) if name + SCALE in arrays else array
            for name, array in arrays.items()
            if not name.endswith(SCALE)
        }
        check_store(manifest, self.path, manifest_path)
        self.identity = identity_in(manifest)
        self._manifest = manifest
        self._layer: int | None = None

    @cached_property
    def ids(self) -> list[str]:
        """The id of each row."""
        return read_ids(self._manifest, self.path)

    def __getitem__(self, name: str) -> FeatureArray:
        try:
            return self.arrays[name]
        except KeyError as error:
            remedy = "use a backbone with output: hidden, or a model that reads the arrays that there are"
            remedy = "pull them with vitcapr features pull" if self.partial else remedy
            what = f"the feature store has no '{name}', only {', '.join(self)}"
            raise MissingArray(what, where=self.path, remedy=remedy) from error

    def check_width(self, name: str, width: int) -> None:
        """Check that the store has the array, and that the features in it are as wide as a model expects."""
        if (actual := self[name].shape[-1]) != width:
            what = f"the model reads features of width {width}, these are {actual} wide"
            raise UserError(what, where=self.path, remedy="give the features it was trained on")

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def image_ids(self) -> list[str]:
        """The image of each row; empty in a store of captions."""
        return self.ids if self.identity == "image_id" else []

    def at_layer(self, layer: int | None) -> Self:
        """Return the store with the arrays of a hidden layer as its ``cls`` and ``patches``, and no other array.

        Args:
            layer: counted from 1; None: the output of the backbone, which is the store as it is.

        Raises:
            UserError: the store does not have this layer.
        """
        if layer is None:
            return self
        view = copy(self)
        view._layer = layer
        names = zip(("cls", "patches"), arrays_of_layer(layer), strict=True)
        view.arrays = {name: self[array] for name, array in names if array in self}
        if not view.arrays:
            stored = sorted({int(match[1]) for name in self if (match := _OF_A_LAYER.fullmatch(name))})
            has = (
                f"it has {', '.join(map(str, stored))}" if stored else "it has none; name it in layers of the backbone"
            )
            raise UserError(f"the feature store has no layer {layer}", where=self.path, remedy=has)
        return view

    def check_rows(self, identity: str, data: "Manifest") -> None:
        """Check that the rows are the images (``image_id``) or captions (``caption_id``) of a data set, in its order.

        Imported features are compared by ids alone, for the contents of their images are unknown.
        """
        rows = Rows.of_images(data) if identity == "image_id" else Rows.of_captions(data)
        what, contents = f"{rows.kind}s", self.attributes.get(f"{rows.kind}s_sha256")
        if self.identity == identity and contents == rows.sha256:
            return
        ids = rows.ids.tolist()
        if self.identity != identity or self.ids != ids:
            known = set(self.ids) if self.identity == identity else set()
            missing = [identifier for identifier in ids if identifier not in known]
            problem = f"the features are not those of the {what} of the data set {data.dataset}: "
            if missing:
                problem += f"{len(missing)} of {len(ids)} have none, '{missing[0]}' first"
            else:
                problem += f"{len(known) - len(ids)} are of others" if len(known) > len(ids) else "another order"
        elif "imported" not in self.attributes:
            problem = f"the features are of other {what} with the ids of the data set {data.dataset}"
        else:
            return
        remedy = "extract the features of this data set; import those of other programs again, with --data"
        raise UserError(problem, where=self.manifest_path, remedy=remedy)

    def __repr__(self) -> str:
        rows = self._manifest[self.identity]["shape"][0]
        of_images = self.identity == "image_id"
        what = f"grid {self.grid[0]} x {self.grid[1]}, {rows} images" if of_images else f"{rows} captions"
        lines = [f"FeatureStore({self.path}), {what}" + (", a part" if self.partial else "")]
        return "\n".join([*lines, *(f"  {name}: {array.shape} {array.dtype}" for name, array in self.arrays.items())])

    def __reduce__(self) -> Any:
        """Another process opens the store again, at the same layer."""
        return _reopen, (self.manifest_path, self._layer)

    def close(self) -> None:
        for array in self.arrays.values():
            array.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reopen(manifest: Path, layer: int | None) -> FeatureStore:
    return open_features(manifest).at_layer(layer)


def open_features(path: str | Path) -> FeatureStore:
    """Open a sealed store by its ``manifest.json``, or the folder that holds it, and check that it is whole.

    Some of the chunks are read and compared with their checksums; ``vitcapr features verify`` reads all.

    Examples:
        >>> features = open_features("results/demo/features/vit/manifest.json")  # doctest: +SKIP
        >>> features["patches"][0].shape, features.image_ids[0]  # doctest: +SKIP

    Raises:
        UserError: no sealed manifest there, or the store lacks a chunk, or is not the one that was sealed.
    """
    manifest = Path(path)
    if manifest.is_dir():
        manifest = manifest / "manifest.json"
    content = read_sealed(manifest)
    return FeatureStore(manifest, content)
