"""Image features and decoded pixels in a store, from the images of a data set.

The next images are decoded and resized while the model computes: on a CPU by threads, since the model needs the cores
too; for a GPU by a process for each core, since threads wait for one another (for the interpreter, and for fresh pages
of one process's memory), and the thread that launches the model's work waits with them.
"""

import hashlib
import math
import mmap
import multiprocessing
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vitcapr.data.images import BadImage, ImageSource, decode
from vitcapr.encoders.devices import dtype_name, memory_line, to_device
from vitcapr.encoders.network_checks import NO_GRID, ImageEncoder
from vitcapr.encoders.preprocess import Preprocessing
from vitcapr.errors import UserError
from vitcapr.formats.containers import TableFile
from vitcapr.store.layout import PIXELS
from vitcapr.workers import depend_on_parent, usable_cores

_BATCHES_AHEAD = 2
_IMAGES_OF_A_CORE = 32
"""Images that are decoded ahead for each core, where these are more batches."""
_TOGETHER = 8
"""Images that a thread or process is given at once."""
_KEPT_BLOCKS = 8
"""Blocks of memory that Pillow keeps in each process for its next pictures."""

_Facts = tuple[str, int, int, str]
"""Path, width, height and sha256 of an image."""


def read_image(source: ImageSource, path: str, pixels: int, sha256: str) -> Image.Image:
    """Return an image of a data set, RGB.

    Args:
        pixels: width times height.

    Raises:
        UserError: it is damaged, or not what it was when the manifest was made.
    """
    try:
        content = source.read(path)
        if hashlib.sha256(content).hexdigest() != sha256:
            what, remedy = "the image is not the file it was when the manifest was made", "run the data stage again"
            raise UserError(what, where=path, remedy=remedy)
        return decode(content, pixels)
    except BadImage as error:
        what, remedy = f"the image cannot be read any more: {error.reason}", "run the data stage again, without it"
        raise UserError(what, where=path, remedy=remedy) from error


_decode_here: Callable[..., None]
"""The function that a process of the pool was forked to run."""


def _begin(decode: Callable[..., None]) -> None:
    global _decode_here
    _decode_here = decode
    depend_on_parent()
    Image.core.set_blocks_max(_KEPT_BLOCKS)  # type: ignore[attr-defined]


def _decode(block: int, first: int, facts: Iterable[_Facts]) -> None:
    _decode_here(block, first, facts)


class Pixels:
    """Decoded images, for models that are trained end to end.

    A row is the output of a checkpoint's processor before it normalises.
    """

    store_dtype, grid, device = "uint8", NO_GRID, torch.device("cpu")

    def __init__(self, images: TableFile, source: ImageSource, preprocessing: Preprocessing) -> None:
        """Prepare to decode the images of the data set's table."""
        self._images, self._source, self.preprocessing = images, source, preprocessing
        self.shapes: Mapping[str, tuple[int, ...]] = {PIXELS: (*preprocessing.size, 3)}
        self.summary = f"{' x '.join(map(str, preprocessing.size))} pixels"
        self.waited = 0.0

    def decoded(self, batches: Sequence[np.ndarray], device: torch.device) -> Generator[Tensor, None, None]:
        """Yield (B, H, W, 3) uint8 for each batch of B rows, in order.

        A tensor stands until the next one is asked for; the next batches are decoded meanwhile.

        Raises:
            UserError: an image is damaged or changed, or a process was killed.
        """
        if not batches:
            return
        largest, on_gpu = max(map(len, batches)), device.type == "cuda"
        cores = usable_cores() if on_gpu else torch.get_num_threads()
        ahead = max(_BATCHES_AHEAD, math.ceil(cores * _IMAGES_OF_A_CORE / largest))
        shape = (largest, *self.preprocessing.size, 3)
        # Memory of this process and of those that it forks.
        blocks = [np.frombuffer(mmap.mmap(-1, math.prod(shape)), np.uint8).reshape(shape) for _ in range(ahead + 1)]

        def decode(block: int, first: int, facts: Iterable[_Facts]) -> None:
            for (path, width, height, sha256), out in zip(facts, blocks[block][first:], strict=False):
                self.preprocessing.prepare(read_image(self._source, path, width * height, sha256), out)

        pool: Executor
        if on_gpu:
            # A fork has the source as it is open here; no thread of this process decodes.
            count = min(cores, math.ceil(sum(map(len, batches)) / _TOGETHER))
            pool = ProcessPoolExecutor(count, multiprocessing.get_context("fork"), _begin, (decode,))
        else:
            pool = ThreadPoolExecutor(cores, thread_name_prefix="decode")
        task = _decode if on_gpu else decode
        decoding: deque[tuple[Tensor, list[Future[None]]]] = deque()
        try:
            for number in range(len(batches) + ahead):
                if number < len(batches):
                    rows, block = batches[number], number % len(blocks)
                    table = self._images.rows(rows, "path", "width", "height", "sha256")
                    facts = list(table.itertuples(index=False, name=None))
                    parts = range(0, len(rows), _TOGETHER)
                    futures = [pool.submit(task, block, first, facts[first : first + _TOGETHER]) for first in parts]
                    decoding.append((torch.from_numpy(blocks[block][: len(rows)]), futures))
                if number >= ahead:
                    pixels, futures = decoding.popleft()
                    begin = time.perf_counter()
                    for future in futures:
                        future.result()
                    self.waited += time.perf_counter() - begin
                    yield pixels
        except BrokenProcessPool as error:
            remedy = "run it again; if memory ran out, with more memory or on fewer cores"
            raise UserError("a process that decoded images was killed", remedy=remedy) from error
        finally:
            pool.shutdown(cancel_futures=True)

    def compute(self, batches: Sequence[np.ndarray]) -> Generator[dict[str, Tensor], None, None]:
        for pixels in self.decoded(batches, self.device):
            yield {PIXELS: pixels}

    def remarks(self) -> list[str]:
        return []


class ImageFeatures:
    """Images through a backbone."""

    def __init__(self, pixels: Pixels, backbone: ImageEncoder, store_dtype: str) -> None:
        self._pixels, self._backbone = pixels, backbone
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
            ready = self._pixels.preprocessing.normalise(to_device(pixels, self.device), self._backbone.dtype)
            yield self._backbone.features(ready)

    def remarks(self) -> list[str]:
        return [memory_line(self._backbone.model, self.device)]
