"""Whether a store holds the images of a data set, row by row."""

from pathlib import Path

from vitcapr.artefacts.manifest import Manifest
from vitcapr.errors import UserError
from vitcapr.features.store.reader import FeatureStore


def check_images(store: FeatureStore, data: Manifest, where: Path) -> None:
    """Raises:
    UserError: the rows of the store are not the images of the data set, in its order.
    """
    if store.image_ids != data.images["image_id"].tolist():
        raise UserError(
            f"the features are not those of the data set {data.dataset}",
            where=where,
            remedy="extract the features of this data set",
        )
