"""Decoded pictures in a store: for models that are trained through the network that looks at them.

A store of 8-bit pixels is laid out, written, sealed and read as one of features. What is in it is what a checkpoint's
processor makes of each picture before it normalises; the mean and deviation stand in the attributes.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from vitcapr.data.images import ImageSource
from vitcapr.encoders.preprocess import Preprocessing
from vitcapr.progress import Tracker
from vitcapr.store.fill_images import Photograph, open_photograph
from vitcapr.store.known_rows import KnownRows
from vitcapr.store.layout import ArrayLayout
from vitcapr.store.writer import StoreWriter

PIXELS = "pixels"
"""The array of a pixel store: (N, S, S, 3) uint8."""


def pixel_layout(images: int, size: tuple[int, int], chunk: int) -> ArrayLayout:
    return ArrayLayout((images, *size, 3), chunk, "uint8", ("image", "row", "column", "channel"))


def decode_chunks(
    chunks: Sequence[int],
    photographs: Sequence[Photograph],
    source: ImageSource,
    preprocessing: Preprocessing,
    writer: StoreWriter,
    known: KnownRows,
    workers: int,
    tracker: Tracker,
) -> None:
    """Decode, resize and write the chunks with the numbers ``chunks``, in order.

    Args:
        photographs: all images of the store, in row order.
        known: the rows that are copied from other stores.
        workers: threads that decode (Pillow lets go of the interpreter while it does).
        tracker: is advanced by images.

    Raises:
        UserError: an image is damaged or changed, or the disk is full. Chunks finished before stay finished.
    """
    layout = writer.layouts[PIXELS]

    def prepare(photograph: Photograph, out: np.ndarray) -> None:
        preprocessing.prepare(open_photograph(photograph, source), out)

    with ThreadPoolExecutor(workers, thread_name_prefix="decode") as pool:
        for index in chunks:
            rows = known.missing(index).tolist()
            pixels = known.fill(index, writer.layouts)[PIXELS]
            into = [pixels[row - index * layout.chunk] for row in rows]
            for _ in pool.map(prepare, [photographs[row] for row in rows], into):
                tracker.advance()
            writer.write(index, {PIXELS: pixels}, known.copied(index))
