"""The feature stores of a retriever: those of its backbone and of its augmented views."""

from collections.abc import Sequence
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.store.reader import FeatureStore, open_features


def open_augmented_views(
    data: Manifest, names: Sequence[str], features: Path, further: Sequence[Path] | None, layer: int | None = None
) -> list[FeatureStore]:
    """The stores of all views of the images of a data set: first the backbone's, then those of the augmented views.

    Args:
        names: the retriever's augmented views, in its configuration.
        further: the manifests of their features.
        layer: the hidden layer whose arrays the stores show as ``cls`` and ``patches``; None: the backbone's output.

    Raises:
        UserError: a store holds other images or lacks the layer, the number of views is wrong, or their networks or
            shapes differ.
    """
    paths = [features, *(further or [])]
    if len(paths) != 1 + len(names):
        raise UserError(
            f"the retriever uses {len(names)} augmented views of an image, but {len(paths) - 1} are given",
            remedy=f"give --augmented-views once for each of: {', '.join(names)}"
            if names
            else "leave out --augmented-views",
        )
    stores = [open_features(path).at_layer(layer) for path in paths]
    for store in stores:
        store.check_rows("image_id", data)
    for store, path in zip(stores[1:], paths[1:], strict=True):
        if _kind(store) != _kind(stores[0]):
            raise UserError(
                "this view was extracted with another network or image size than the features",
                where=path,
                remedy="extract all views with one network and one image size",
            )
    return stores


def _kind(store: FeatureStore) -> tuple[object, ...]:
    """What all views of an image must have in common."""
    return store.attributes.get("weights_sha256"), [store[name].shape for name in ("cls", "patches") if name in store]
