"""Photographs through a backbone into the chunks of a store; decoding, forward pass and writing overlap.

Threads decode and resize the next batches (Pillow lets go of the interpreter while it does), this thread runs the
model, and one more thread casts to bytes, digests and writes. Everything that waits is bounded: two batches ahead of
the model, one chunk behind it.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image

from vitcapr.data.images import BadImage, ImageSource, decode
from vitcapr.encoders.base import NO_GRID, ImageEncoder
from vitcapr.encoders.precision import DTYPES
from vitcapr.encoders.preprocess import Preprocessing
from vitcapr.errors import UserError
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.store_manifest import SCALE
from vitcapr.progress import Tracker
from vitcapr.store.int8 import dtype_of, quantise
from vitcapr.store.known_rows import KnownRows
from vitcapr.store.layout import ArrayLayout
from vitcapr.store.writer import StoreWriter

_BATCHES_AHEAD = 2


@dataclass(frozen=True)
class Photograph:
    """An image file as the manifest knows it; ``pixels`` is width times height."""

    image_id: str
    path: str
    pixels: int
    sha256: str


def photographs_of(data: Manifest) -> list[Photograph]:
    """All images of a data set, in row order."""
    columns = data.images[["image_id", "path", "width", "height", "sha256"]]
    return [
        Photograph(image_id, path, int(width) * int(height), digest)
        for image_id, path, width, height, digest in columns.itertuples(index=False, name=None)
    ]


def open_photograph(photograph: Photograph, source: ImageSource) -> Image.Image:
    """The picture, RGB.

    Raises:
        UserError: it is damaged, or not what it was when the manifest was made.
    """
    try:
        content = source.read(photograph.path)
        if hashlib.sha256(content).hexdigest() != photograph.sha256:
            raise UserError(
                f"image '{photograph.image_id}' is not the file it was when the manifest was made",
                where=photograph.path,
                remedy="run the data stage again",
            )
        return decode(content, photograph.pixels)
    except BadImage as error:
        raise UserError(
            f"image '{photograph.image_id}' cannot be read any more: {error.reason}",
            where=photograph.path,
            remedy="run the data stage again, which leaves damaged images out",
        ) from error


@dataclass(frozen=True)
class Span:
    """The images of one forward pass, all in one chunk.

    Attributes:
        rows: of the store, increasing.
        ends: whether it is the last of its chunk.
    """

    chunk: int
    rows: np.ndarray
    ends: bool


@dataclass
class _Batch:
    """A span on its way through decoding."""

    span: Span
    pixels: np.ndarray
    decoding: list["Future[None]"]


class _Decoder:
    """Yields batches in order, the next ones being decoded meanwhile by ``workers`` threads."""

    def __init__(
        self,
        source: ImageSource,
        photographs: Sequence[Photograph],
        preprocessing: Preprocessing,
        spans: Sequence[Span],
        workers: int,
    ) -> None:
        self._source, self._photographs, self._preprocessing = source, photographs, preprocessing
        self._spans = deque(spans)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="decode")
        self._ahead: deque[_Batch] = deque()

    def _submit(self) -> None:
        span = self._spans.popleft()
        pixels = np.empty((len(span.rows), *self._preprocessing.size, 3), np.uint8)
        decoding = [
            self._pool.submit(self._decode, self._photographs[row], out)
            for row, out in zip(span.rows, pixels, strict=True)
        ]
        self._ahead.append(_Batch(span, pixels, decoding))

    def _decode(self, photograph: Photograph, out: np.ndarray) -> None:
        self._preprocessing.prepare(open_photograph(photograph, self._source), out)

    def __iter__(self) -> Iterator[_Batch]:
        while self._spans or self._ahead:
            while self._spans and len(self._ahead) < _BATCHES_AHEAD:
                self._submit()
            batch = self._ahead.popleft()
            for future in batch.decoding:
                future.result()
            if self._spans:
                self._submit()
            yield batch

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


def layouts_of(backbone: ImageEncoder, images: int, chunk: int, dtype: str) -> dict[str, ArrayLayout]:
    """The arrays of a store of a backbone's features, by name."""
    axes = {2: ("image", "patch", "channel"), 1: ("image", "channel")}
    layouts = {}
    for name, shape in backbone.shapes.items():
        layouts[name] = ArrayLayout((images, *shape), chunk, dtype_of(name, dtype), axes[len(shape)])
        if layouts[name].dtype == "int8":
            layouts[name + SCALE] = ArrayLayout((images, shape[-1]), chunk, "float16", axes[1])
    return dict(sorted(layouts.items()))


def shape_of(backbone: ImageEncoder) -> str:
    """What a picture becomes: ``14 x 14 patches of 768``, ``32 tokens of 768``, ``a vector of 512``."""
    if "patches" not in backbone.shapes:
        return f"a vector of {backbone.shapes['cls'][0]}"
    tokens, width = backbone.shapes["patches"]
    if backbone.grid == NO_GRID:
        return f"{tokens} tokens of {width}"
    layers = [name.removeprefix("cls_") for name in backbone.shapes if name.startswith("cls_")]
    more = f" from the output and layers {', '.join(layers)}" if layers else ""
    return f"{backbone.grid[0]} x {backbone.grid[1]} patches of {width}{more}"


def spans_of(chunks: Sequence[int], known: KnownRows, batch: int) -> list[Span]:
    """Every forward pass. None crosses chunks, so that a chunk's numbers are the same whichever chunks are computed in
    the same run."""
    spans = []
    for index in chunks:
        rows = known.missing(index)
        starts = range(0, len(rows), batch)
        spans += [Span(index, rows[first : first + batch], first == starts[-1]) for first in starts]
    return spans


def extract_chunks(
    chunks: Sequence[int],
    photographs: Sequence[Photograph],
    source: ImageSource,
    preprocessing: Preprocessing,
    backbone: ImageEncoder,
    writer: StoreWriter,
    known: KnownRows,
    batch: int,
    workers: int,
    tracker: Tracker,
) -> None:
    """Compute and write the chunks with the numbers ``chunks``, in order. Each lacks at least one row.

    Args:
        photographs: all images of the store, in row order.
        known: the rows that are copied from other stores.
        batch: images in one forward pass.
        workers: threads that decode.
        tracker: is advanced by images.

    Raises:
        UserError: an image is damaged or changed, a feature is not finite, or the disk is full. Chunks finished
            before stay finished.
    """
    decoder = _Decoder(source, photographs, preprocessing, spans_of(chunks, known, batch), workers)
    writing = ThreadPoolExecutor(1, thread_name_prefix="write")
    written: Future[None] | None = None
    buffers: dict[str, np.ndarray] = {}
    try:
        for work in decoder:
            index = work.span.chunk
            if not buffers:
                buffers = known.fill(index, writer.layouts)
            _forward(work, photographs, preprocessing, backbone, buffers, writer.layouts)
            tracker.advance(len(work.span.rows))
            if work.span.ends:
                if written is not None:
                    written.result()
                written = writing.submit(writer.write, index, buffers, known.copied(index))
                buffers = {}
        if written is not None:
            written.result()
    finally:
        decoder.close()
        writing.shutdown()


def _forward(
    work: _Batch,
    photographs: Sequence[Photograph],
    preprocessing: Preprocessing,
    backbone: ImageEncoder,
    buffers: dict[str, np.ndarray],
    layouts: Mapping[str, ArrayLayout],
) -> None:
    """Fill the rows of one batch in the chunk's buffers with features."""
    rows = work.span.rows
    with torch.inference_mode():
        pixels = torch.from_numpy(work.pixels).to(backbone.device)
        for name, features in backbone.features(preprocessing.normalise(pixels, backbone.dtype)).items():
            readable = features.to(DTYPES.get(layouts[name].dtype, torch.float16))
            # The extremes are not finite if any number is not, and are found ten times sooner than all such numbers.
            if not bool(torch.isfinite(torch.stack(torch.aminmax(readable))).all()):
                _name_the_image(features, readable, [photographs[row] for row in rows])
            arrays = {name: readable}
            if layouts[name].dtype == "int8":
                arrays[name], arrays[name + SCALE] = quantise(features)
            for array, stored in arrays.items():
                first_row = work.span.chunk * layouts[array].chunk
                start = int(rows[0]) - first_row
                target = torch.from_numpy(buffers[array])
                # Rows side by side, as in every new store, are copied from the device without a tensor in between.
                if rows[-1] - rows[0] + 1 == len(rows):
                    target[start : start + len(rows)].copy_(stored)
                else:
                    target[torch.from_numpy(rows - first_row)] = stored.cpu()


def _name_the_image(features: torch.Tensor, stored: torch.Tensor, photographs: Sequence[Photograph]) -> None:
    """Raises:
    UserError: names the first image with a feature that is not finite.
    """
    finite = torch.isfinite(stored).flatten(1).all(dim=1).tolist()
    position = finite.index(False)
    overflow = bool(torch.isfinite(features[position]).all())
    raise UserError(
        f"the features of image '{photographs[position].image_id}' are "
        + ("too large for the store's dtype" if overflow else "not finite"),
        where=photographs[position].path,
        remedy="set store_dtype: float32" if overflow else "set the backbone's dtype to float32, or check its weights",
    )
