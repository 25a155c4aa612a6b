"""From the images of a data set to the arrays of a store: features of a backbone, or decoded pixels.

Threads decode and resize the next images while the model computes (Pillow lets go of the interpreter meanwhile). For a
GPU they take all cores of this process; on a CPU the model needs them too.
"""

import hashlib
import os
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitcapr.data.images import BadImage, ImageSource, decode
from vitcapr.encoders.base import NO_GRID, ImageEncoder
from vitcapr.encoders.precision import dtype_name, memory_line
from vitcapr.encoders.preprocess import Preprocessing
from vitcapr.encoders.staging import host_buffer, to_device
from vitcapr.errors import UserError
from vitcapr.formats.containers import TableFile
from vitcapr.store.layout import PIXELS

_BATCHES_AHEAD = 2


def read_image(source: ImageSource, path: str, pixels: int, sha256: str, side: int | None = None) -> Image.Image:
    """An image of a data set, RGB.

    Args:
        pixels: width times height.
        side: as in :func:`decode`.

    Raises:
        UserError: it is damaged, or not what it was when the manifest was made.
    """
    try:
        content = source.read(path)
        if hashlib.sha256(content).hexdigest() != sha256:
            what, remedy = "the image is not the file it was when the manifest was made", "run the data stage again"
            raise UserError(what, where=path, remedy=remedy)
        return decode(content, pixels, side)
    except BadImage as error:
        what, remedy = f"the image cannot be read any more: {error.reason}", "run the data stage again, without it"
        raise UserError(what, where=path, remedy=remedy) from error


class Pixels:
    """Decoded images, for models that are trained through the network that looks at them: what the processor of a
    checkpoint makes of each image before it normalises."""

    store_dtype, grid, device = "uint8", NO_GRID, torch.device("cpu")

    def __init__(self, images: TableFile, source: ImageSource, preprocessing: Preprocessing) -> None:
        """Args:
        images: the table of images of the data set.
        """
        self._images, self._source, self._preprocessing = images, source, preprocessing
        self.shapes: Mapping[str, tuple[int, ...]] = {PIXELS: (*preprocessing.size, 3)}
        self.summary = f"{' x '.join(map(str, preprocessing.size))} pixels"
        self.waited = 0.0

    def decoded(self, batches: Sequence[np.ndarray], device: torch.device) -> Generator[Tensor, None, None]:
        """(B, H, W, 3) uint8 for each batch of B rows, in order, in memory from which ``device`` copies; the next
        batches are decoded meanwhile."""
        threads = len(os.sched_getaffinity(0)) if device.type == "cuda" else torch.get_num_threads()
        pool = ThreadPoolExecutor(threads, thread_name_prefix="decode")
        ahead: deque[tuple[Tensor, list[Future[None]]]] = deque()
        left = deque(batches)
        try:
            while left or ahead:
                while left and len(ahead) <= _BATCHES_AHEAD:
                    rows = left.popleft()
                    pixels = host_buffer((len(rows), *self._preprocessing.size, 3), torch.uint8, device)
                    facts = self._images.rows(rows, "path", "width", "height", "sha256").itertuples(index=False)
                    pairs = zip(facts, pixels.numpy(), strict=True)
                    ahead.append((pixels, [pool.submit(self._decode, *pair) for pair in pairs]))
                pixels, decoding = ahead.popleft()
                begin = time.perf_counter()
                for future in decoding:
                    future.result()
                self.waited += time.perf_counter() - begin
                yield pixels
        finally:
            pool.shutdown(cancel_futures=True)

    def _decode(self, facts: tuple[str, int, int, str], out: np.ndarray) -> None:
        path, width, height, sha256 = facts
        side = max(self._preprocessing.resize) if self._preprocessing.scaled_decoding else None
        self._preprocessing.prepare(read_image(self._source, path, width * height, sha256, side), out)

    def compute(self, batches: Sequence[np.ndarray]) -> Generator[dict[str, Tensor], None, None]:
        for pixels in self.decoded(batches, self.device):
            yield {PIXELS: pixels}

    def remarks(self) -> list[str]:
        return []


class ImageFeatures:
    """Images through a backbone."""

    def __init__(self, pixels: Pixels, preprocessing: Preprocessing, backbone: ImageEncoder, store_dtype: str) -> None:
        self._pixels, self._preprocessing, self._backbone = pixels, preprocessing, backbone
        self.store_dtype, self.grid, self.shapes = store_dtype, backbone.grid, backbone.shapes
        self.device = backbone.device
        cls_is = getattr(backbone, "cls_is", None)  # Said where it is not the only token before the patches.
        self.remark = {"cls_is": cls_is} if cls_is and not cls_is.startswith("token 0 of 1 ") else {}
        arrays = ", ".join(f"{name} {' x '.join(map(str, shape))}" for name, shape in backbone.shapes.items())
        self.summary = f"{arrays}, {dtype_name(backbone.dtype)} on {backbone.device.type}"

    @property
    def waited(self) -> float:
        return self._pixels.waited

    def compute(self, batches: Sequence[np.ndarray]) -> Generator[dict[str, Tensor], None, None]:
        for pixels in self._pixels.decoded(batches, self.device):
            ready = self._preprocessing.normalise(to_device(pixels, self.device), self._backbone.dtype)
            yield self._backbone.features(ready)

    def remarks(self) -> list[str]:
        return [memory_line(self._backbone.model, self.device)]
