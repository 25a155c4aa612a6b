"""Whether a store holds the images or the captions of a data set, row by row."""

from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.store.reader import FeatureStore


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


def check_captions(store: FeatureStore, data: Manifest, where: Path) -> None:
    """Raises:
    UserError: the rows of the store are not the captions of the data set, in its order.
    """
    if store.identity != "caption_id" or store.ids != data.captions["caption_id"].tolist():
        raise UserError(
            f"the text features are not those of the captions of the data set {data.dataset}",
            where=where,
            remedy="extract the text features of this data set",
        )
