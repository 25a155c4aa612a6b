"""Features are compared with the photographs and the captions of a data set when they enter, on a sample of rows."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from PIL import Image

from vitcapr import joints
from vitcapr.data.images import BadImage, ImageSource, decode_small
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.store.layout import TEXT
from vitcapr.store.reader import FeatureStore

WITHOUT = "the content of the rows is not compared, as the user says (without content check)"
_ROWS_OF_PATCHES = 160


def check_features(
    arrays: Mapping[str, Any],
    identity: str,
    grid: tuple[int, int],
    data: Manifest,
    say: Callable[[str], None],
    where: object,
    mirrored: bool = False,
    computed_here: bool = False,
) -> None:
    """Compare arrays with the images or captions of a data set, and say or raise what the content says.

    Args:
        arrays: (N, D) or (N, P, D) each, in the order of the data set; anything that takes an array of rows.
        identity: ``image_id`` or ``caption_id``.
        grid: rows and columns of patches; (0, 0) if nobody knows.
        say: receives a line for each joint.
        mirrored: the features are of mirrored photographs, as the recipe of their store says.
        computed_here: the rows were computed from these images in their order. Rows at chance are then those of an
            encoder that sees little, such as one with random weights: only another arrangement that fits stops.

    Raises:
        UserError: rows or patches do not belong to their images or captions.
    """
    if identity == "caption_id":
        verdicts = _texts(arrays, data, computed_here)
    else:
        try:
            verdicts = _photographs(arrays, grid, data, mirrored, computed_here)
        except (BadImage, UserError, OSError) as error:
            say(f"features and photographs are not compared: {error}")
            verdicts = []
        verdicts += _captions(arrays, data, computed_here)
    stop_if_wrong(verdicts, say, where)


def check_store_content(
    store: FeatureStore,
    data: Manifest,
    content_check: bool,
    say: Callable[[str], None],
    computed_here: bool = False,
) -> None:
    """Compare a store with the data set that has its rows, unless the user says that they belong together."""
    if not content_check:
        say(WITHOUT)
    elif not store.attributes.get("imported", {}).get("content_check", True):
        say("the content of the rows was not compared when they were imported, as the user said")
    else:
        mirrored = bool(store.attributes.get("preprocessing", {}).get("mirror", False))
        check_features(
            store.arrays, store.identity, store.grid, data, say, store.manifest_path, mirrored, computed_here
        )


def stop_if_wrong(verdicts: Sequence[joints.Verdict], say: Callable[[str], None], where: object) -> None:
    """Say each verdict; raise an error of the first that is wrong."""
    for verdict in verdicts:
        if verdict.outcome == "wrong":
            remedy = "correct the order, or, if the rows are right, answer with --without-content-check"
            raise UserError(str(verdict), where=where, remedy=remedy)
        say(str(verdict))


def thumbnails(data: Manifest, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the photographs of some rows, whole and cut to a centred square: (n, 32, 32, 3) uint8 each.

    Raises:
        BadImage: a photograph is not there any more.
    """
    size = (joints.THUMBNAIL, joints.THUMBNAIL)
    whole, square = [], []
    table = data.image_table.rows(rows, "path", "width", "height")
    with ImageSource(data.image_root) as source:
        for path, width, height in table.itertuples(index=False, name=None):
            picture = decode_small(source.read(path), width * height, 2 * joints.THUMBNAIL)
            side = min(picture.size)
            left, top = (picture.width - side) / 2, (picture.height - side) / 2
            whole.append(np.asarray(picture.resize(size, Image.Resampling.BOX)))
            square.append(np.asarray(picture.resize(size, Image.Resampling.BOX, (left, top, left + side, top + side))))
    return np.stack(whole), np.stack(square)


def _photographs(
    arrays: Mapping[str, Any], grid: tuple[int, int], data: Manifest, mirrored: bool, computed_here: bool
) -> list[joints.Verdict]:
    count = len(data.image_table)
    rows, few = joints.sample_rows(count), joints.sample_rows(count, joints.IMAGES_OF_PATCHES)
    every = np.union1d(rows, few)
    whole, square = (part[:, :, :: -1 if mirrored else 1] for part in thumbnails(data, every))
    seen, near = np.searchsorted(every, rows), np.searchsorted(every, few)
    inputs, crops = joints.photograph_inputs(whole[seen]), [joints.colours_of(part[near]) for part in (whole, square)]
    orders = joints.row_orders(data.image_table.column("image_id").tolist())
    verdicts = []
    for name, array in arrays.items():
        if len(array.shape) not in (2, 3):
            continue  # Decoded pixels.
        part = slice(None) if len(array.shape) == 2 else slice(_ROWS_OF_PATCHES)
        powered = len(rows) >= joints.LEAST_ROWS and not computed_here
        verdict = joints.related(f"'{name}' and photographs", inputs[part], array, rows[part], orders, powered)
        verdicts.append(verdict)
        if len(array.shape) == 3 and verdict.outcome != "wrong":
            powered = verdict.strength >= joints.CLEAR and not computed_here
            patches = np.asarray(array[few], np.float32)
            verdicts.append(joints.places(f"'{name}' and places", patches, crops, grid, powered))
    return verdicts


def _captions(arrays: Mapping[str, Any], data: Manifest, computed_here: bool) -> list[joints.Verdict]:
    """Compare one array of images with their captions, vectors rather than patches."""
    usable = [name for name in arrays if len(arrays[name].shape) in (2, 3)]
    if not usable:
        return []
    name = min(usable, key=lambda name: len(arrays[name].shape))
    array, image = arrays[name], data.caption_table.column("image_row").to_numpy()
    images = np.unique(image)
    size = joints.SAMPLE if len(array.shape) == 2 else joints.LEAST_CAPTIONS
    rows = images[joints.sample_rows(len(images), size)]
    captions = data.caption_table.rows(np.flatnonzero(np.isin(image, rows)), "image_row", "text")
    texts = captions.groupby("image_row")["text"].agg(" ".join)
    orders = joints.row_orders(data.image_table.column("image_id").tolist())
    words = joints.bags_of_words(texts[rows].tolist())
    powered = len(rows) >= joints.LEAST_CAPTIONS and not computed_here
    return [joints.related(f"captions and '{name}'", words, array, rows, orders, powered, predict_first=True)]


def _texts(arrays: Mapping[str, Any], data: Manifest, computed_here: bool) -> list[joints.Verdict]:
    """Compare vectors of captions with their words."""
    rows = joints.sample_rows(len(data.caption_table), 2 * joints.SAMPLE)
    words = joints.bags_of_words(data.caption_table.rows(rows, "text")["text"].tolist())
    orders = joints.row_orders(data.caption_table.column("caption_id").tolist())
    image = data.caption_table.column("image_row").to_numpy()
    if len(image) % (image.max() + 1) == 0 and image.max() > 0:
        each = len(image) // (image.max() + 1)
        orders["caption 1 of each image, caption 2 of each image, ..."] = (
            np.arange(len(image)).reshape(each, -1).T.ravel()
        )
    powered = len(rows) >= joints.LEAST_CAPTIONS and not computed_here
    return [
        joints.related(f"'{name}' and captions", words, array, rows, orders, powered, predict_first=True)
        for name, array in arrays.items()
        if name == TEXT or len(array.shape) == 2
    ]
