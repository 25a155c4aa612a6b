"""Reads a finished store with zarr and compares it with the mapped chunk files, before the store is sealed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vitcapr.errors import UserError
from vitcapr.store.layout import ArrayLayout
from vitcapr.store.reader import FeatureArray

_REMEDY = "delete the store and make it again; please report this if it happens again"


def check_with_zarr(group: Path, layouts: Mapping[str, ArrayLayout], attributes: Mapping[str, Any]) -> None:
    """Compare shape, data type, chunk grid and attributes, and the values of the first, middle and last chunk of every
    array.

    Raises:
        UserError: zarr cannot open the group, or it reads something else than this program.
    """
    # zarr takes half a second to import, and extract imports this module without sealing anything.
    import zarr

    try:
        opened = zarr.open_group(group, mode="r")
        arrays = {name: opened[name] for name in layouts}
        seen = dict(opened.attrs)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"zarr cannot open the store: {error!r}", where=group, remedy=_REMEDY) from error
    if seen != dict(attributes):
        raise UserError("zarr reads other attributes than were written", where=group, remedy=_REMEDY)
    for name, layout in layouts.items():
        _check_array(arrays[name], layout, group / name)


def _check_array(array: Any, layout: ArrayLayout, where: Path) -> None:
    expected = (tuple(layout.shape), np.dtype(layout.dtype), (layout.chunk, *layout.shape[1:]))
    found = (tuple(array.shape), np.dtype(array.dtype), tuple(array.chunks))
    if found != expected:
        what = f"zarr reads shape, type and chunks {found}, and vitcapr {expected}"
        raise UserError(what, where=where, remedy=_REMEDY)
    mapped = FeatureArray(where, layout.shape, layout.chunk, np.dtype(layout.dtype).newbyteorder("<"))
    for index in sorted({0, mapped.chunks // 2, mapped.chunks - 1}):
        rows = slice(index * layout.chunk, (index + 1) * layout.chunk)
        # Bytes, because no NaN equals another.
        if np.ascontiguousarray(array[rows]).astype(mapped.dtype, copy=False).tobytes() != mapped[rows].tobytes():
            raise UserError(f"zarr reads other values in chunk {index}", where=where, remedy=_REMEDY)
    mapped.close()
