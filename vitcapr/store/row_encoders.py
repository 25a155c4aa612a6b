"""From the rows of a data set to the arrays of a store: images through a backbone, decoded images, captions.

Threads decode and resize the next images while the model computes (Pillow lets go of the interpreter meanwhile).
"""

import hashlib
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pandas as pd
import torch
from PIL import Image
from torch import Tensor

from vitcapr.data.images import BadImage, ImageSource, decode
from vitcapr.encoders.base import NO_GRID, ImageEncoder
from vitcapr.encoders.precision import dtype_name, memory_line
from vitcapr.encoders.preprocess import Preprocessing
from vitcapr.encoders.text_encoders import TextEncoder, WordVectorEncoder
from vitcapr.errors import UserError

PIXELS, TEXT = "pixels", "text"
"""The array of a store of decoded images, (N, S, S, 3) uint8, and of a store of captions, (M, D)."""
_BATCHES_AHEAD = 2


def read_image(source: ImageSource, path: str, pixels: int, sha256: str) -> Image.Image:
    """An image of a data set, RGB.

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


class Pixels:
    """Decoded images, for models that are trained through the network that looks at them: what the processor of a
    checkpoint makes of each image before it normalises."""

    store_dtype, grid = "uint8", NO_GRID

    def __init__(self, images: pd.DataFrame, source: ImageSource, preprocessing: Preprocessing) -> None:
        """Args:
        images: the table of images of the data set.
        """
        self._source, self._preprocessing = source, preprocessing
        self._images = list(zip(images["path"], images["width"] * images["height"], images["sha256"], strict=True))
        self.shapes = {PIXELS: (*preprocessing.size, 3)}
        self.summary = f"{' x '.join(map(str, preprocessing.size))} pixels"

    def decoded(self, batches: Sequence[np.ndarray]) -> Iterator[Tensor]:
        """(B, H, W, 3) uint8 for each batch of B rows, in order; the next batches are decoded meanwhile.

        Raises:
            UserError: an image is damaged or changed.
        """
        pool = ThreadPoolExecutor(torch.get_num_threads(), thread_name_prefix="decode")
        ahead: deque[tuple[np.ndarray, list[Future[None]]]] = deque()
        left = deque(batches)
        try:
            while left or ahead:
                while left and len(ahead) <= _BATCHES_AHEAD:
                    rows = left.popleft()
                    pixels = np.empty((len(rows), *self._preprocessing.size, 3), np.uint8)
                    ahead.append((pixels, [pool.submit(self._decode, *pair) for pair in zip(rows, pixels, strict=True)]))
                pixels, decoding = ahead.popleft()
                for future in decoding:
                    future.result()
                yield torch.from_numpy(pixels)
        finally:
            pool.shutdown(cancel_futures=True)

    def _decode(self, row: int, out: np.ndarray) -> None:
        path, pixels, sha256 = self._images[row]
        self._preprocessing.prepare(read_image(self._source, path, int(pixels), sha256), out)

    def compute(self, batches: Sequence[np.ndarray]) -> Generator[dict[str, Tensor], None, None]:
        for pixels in self.decoded(batches):
            yield {PIXELS: pixels}

    def remarks(self) -> list[str]:
        return []


class ImageFeatures:
    """Images through a backbone."""

    def __init__(self, pixels: Pixels, preprocessing: Preprocessing, backbone: ImageEncoder, store_dtype: str) -> None:
        self._pixels, self._preprocessing, self._backbone = pixels, preprocessing, backbone
        self.store_dtype, self.grid, self.shapes = store_dtype, backbone.grid, backbone.shapes
        self.summary = f"{_describe(backbone)}, {dtype_name(backbone.dtype)} on {backbone.device.type}"

    def compute(self, batches: Sequence[np.ndarray]) -> Generator[dict[str, Tensor], None, None]:
        for pixels in self._pixels.decoded(batches):
            ready = self._preprocessing.normalise(pixels.to(self._backbone.device), self._backbone.dtype)
            yield self._backbone.features(ready)

    def remarks(self) -> list[str]:
        return [memory_line(self._backbone.model, self._backbone.device)]


def _describe(backbone: ImageEncoder) -> str:
    """What an image becomes: ``14 x 14 patches of 768``, ``32 tokens of 768``, ``a vector of 512``."""
    if "patches" not in backbone.shapes:
        return f"a vector of {backbone.shapes['cls'][0]}"
    tokens, width = backbone.shapes["patches"]
    if backbone.grid == NO_GRID:
        return f"{tokens} tokens of {width}"
    layers = [name.removeprefix("cls_") for name in backbone.shapes if name.startswith("cls_")]
    more = f" from the output and layers {', '.join(layers)}" if layers else ""
    return f"{backbone.grid[0]} x {backbone.grid[1]} patches of {width}{more}"


class CaptionFeatures:
    """Captions through a frozen text encoder.

    Args:
        batch: captions in one forward pass.
        max_length: in tokens; it is reported how many captions reach it.
        device: of the encoder.
    """

    grid = NO_GRID

    def __init__(
        self,
        texts: Sequence[str],
        encoder: TextEncoder | WordVectorEncoder,
        store_dtype: str,
        *,
        batch: int,
        max_length: int,
        device: torch.device,
    ) -> None:
        self._texts, self._encoder, self._batch, self._max_length = texts, encoder, batch, max_length
        self.store_dtype, self.shapes, self._device = store_dtype, {TEXT: (encoder.dim,)}, device
        self.summary = f"vectors of {encoder.dim}, {dtype_name(encoder.dtype)} on {device.type}"
        self._cut = self._unknown = 0

    def compute(self, batches: Sequence[np.ndarray]) -> Generator[dict[str, Tensor], None, None]:
        for rows in batches:
            tokens = self._encoder.tokenize([self._texts[row] for row in rows])
            self._cut += sum(len(of_caption) == self._max_length for of_caption in tokens)
            vectors = self._encoder.encode_tokens(tokens, self._batch)
            self._unknown += int((vectors == 0).all(axis=1).sum())
            yield {TEXT: torch.from_numpy(vectors)}

    def remarks(self) -> list[str]:
        lines = [memory_line(self._encoder.model, self._device)]
        if self._cut:
            lines.append(f"{self._cut} captions have max_length ({self._max_length}) tokens, or had more and were cut")
        if self._unknown:
            lines.append(f"{self._unknown} captions have no word with a vector; theirs is zero")
        return lines
