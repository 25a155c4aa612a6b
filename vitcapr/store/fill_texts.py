"""Captions through a frozen text model into the chunks of a store."""

import numpy as np
import pandas as pd

from vitcapr.encoders.text_encoders import TextEncoder, WordVectorEncoder
from vitcapr.errors import UserError
from vitcapr.progress import Reporter
from vitcapr.store.known_rows import KnownRows
from vitcapr.store.layout import ArrayLayout, rows_in
from vitcapr.store.writer import StoreWriter

TEXT = "text"
"""The array of a store of captions: (M, D)."""
CHUNK = 1024
"""Captions in one chunk of the store: under a megabyte, and a killed run loses a second or two of work."""


def text_layout(captions: int, width: int, dtype: str) -> ArrayLayout:
    return ArrayLayout((captions, width), CHUNK, dtype, ("caption", "channel"))


def encode_captions(
    chunks: list[int],
    captions: pd.DataFrame,
    encoder: TextEncoder | WordVectorEncoder,
    writer: StoreWriter,
    known: KnownRows,
    *,
    batch: int,
    max_length: int,
    reporter: Reporter,
) -> None:
    """Compute and write the chunks with the numbers ``chunks``, in order.

    Args:
        captions: all captions of the store, in row order.
        known: the rows that are copied from other stores.
        batch: captions in one forward pass.
        max_length: in tokens; it is reported how many captions reach it.

    Raises:
        UserError: a feature is not finite, or the disk is full. Chunks finished before stay finished.
    """
    layout = writer.layouts[TEXT]
    longest = unknown = 0
    left = rows_in(chunks, layout.chunk, len(captions)) - known.count(chunks)
    with reporter.track("extract text", len(captions), "captions", len(captions) - left) as bar:
        for index in chunks:
            writer.clear(index)
            rows = known.missing(index)
            table = captions.iloc[rows]
            tokens = encoder.tokenize(table["text"].tolist())
            longest += sum(len(of_caption) == max_length for of_caption in tokens)
            vectors = encoder.encode_tokens(tokens, batch)
            unknown += int((vectors == 0).all(axis=1).sum())
            chunk = known.fill(index, writer.layouts)[TEXT]
            chunk[rows - index * layout.chunk] = _stored(vectors, table, layout)
            writer.write(index, {TEXT: chunk}, known.copied(index))
            bar.advance(len(table))
    if longest:
        reporter.line(f"{longest} captions have max_length ({max_length}) tokens, or had more and were cut")
    if unknown:
        reporter.line(f"{unknown} captions have no word with a vector; theirs is zero")


def _stored(vectors: np.ndarray, captions: pd.DataFrame, layout: ArrayLayout) -> np.ndarray:
    """``vectors`` in the store's dtype.

    Raises:
        UserError: a vector is not finite in that dtype.
    """
    with np.errstate(over="ignore"):
        stored = vectors.astype(layout.dtype)
    finite = np.isfinite(stored).all(axis=1)
    if not finite.all():
        position = int(np.argmin(finite))
        overflow = bool(np.isfinite(vectors[position]).all())
        what = "too large for the store's dtype" if overflow else "not finite"
        raise UserError(
            f"the features of caption '{captions['caption_id'].iloc[position]}' are {what}",
            where=captions["text"].iloc[position],
            remedy="set store_dtype: float32" if overflow else "set dtype: float32, or check the model's weights",
        )
    return stored
