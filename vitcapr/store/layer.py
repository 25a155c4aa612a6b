"""A store seen through one of its hidden layers."""

import re
from copy import copy

from vitcapr.errors import UserError
from vitcapr.formats.store_manifest import arrays_of_layer
from vitcapr.store.reader import FeatureStore

_OF_A_LAYER = re.compile(r"(?:cls|patches)_([1-9][0-9]*)")


def of_layer(store: FeatureStore, layer: int | None) -> FeatureStore:
    """The store with the arrays of a hidden layer as its ``cls`` and ``patches``, and no other array.

    Args:
        layer: counted from 1; None: the output of the backbone, which is the store as it is.

    Raises:
        UserError: the store does not have this layer.
    """
    if layer is None:
        return store
    found = zip(("cls", "patches"), arrays_of_layer(layer), strict=True)
    view = copy(store)
    view.arrays = {name: store[array] for name, array in found if array in store}
    if not view.arrays:
        stored = sorted({int(match[1]) for name in store if (match := _OF_A_LAYER.fullmatch(name))})
        there = f"it has {', '.join(map(str, stored))}" if stored else "it has none; name it in layers of the backbone"
        raise UserError(f"the feature store has no layer {layer}", where=store.path, remedy=there)
    return view
