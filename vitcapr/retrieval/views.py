"""The feature stores of a retriever: those of its backbone and of its augmented views."""

from collections.abc import Sequence
from pathlib import Path

from vitcapr.artefacts.manifest import Manifest
from vitcapr.errors import UserError
from vitcapr.features.store.reader import FeatureStore, open_features


def open_views(
    data: Manifest, names: Sequence[str], features: Path, further: Sequence[Path] | None
) -> list[FeatureStore]:
    """The stores of the images of a data set, that of the retriever's backbone first.

    Args:
        names: the retriever's further views, in its configuration.
        further: their stores.

    Raises:
        UserError: a store is of other images, views are missing or too many, or they do not go together.
    """
    paths = [features, *(further or [])]
    if len(paths) != 1 + len(names):
        raise UserError(
            f"the retriever looks at {len(names)} further views of an image, {len(paths) - 1} are given",
            remedy=f"give --view for each of: {', '.join(names)}" if names else "leave out --view",
        )
    stores = [open_features(path) for path in paths]
    for store, path in zip(stores, paths, strict=True):
        if store.image_ids != data.images["image_id"].tolist():
            raise UserError(
                f"the features are not those of the data set {data.dataset}",
                where=path,
                remedy="extract the features of this data set",
            )
    for store, path in zip(stores[1:], paths[1:], strict=True):
        if _kind(store) != _kind(stores[0]):
            raise UserError(
                "this view is of another network or image size than the features",
                where=path,
                remedy="give views of one network and one image size",
            )
    return stores


def _kind(store: FeatureStore) -> tuple[object, ...]:
    """What views have in common."""
    return store.attributes.get("weights_sha256"), {name: array.shape for name, array in store.items()}
