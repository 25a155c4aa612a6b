"""Fills a store with the features of images or captions, or with decoded pixels: one loop for all.

The caller's encoder computes batch after batch. Other threads gather the batches into chunks, check, digest and write
them while the next ones are computed. On a GPU this thread launches work and copies, and waits for neither.
"""

import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from vitcapr.encoders.checkpoints import stated_licence
from vitcapr.encoders.devices import DTYPES, copies_to_host, host_buffer, to_host
from vitcapr.encoders.network_checks import NO_GRID
from vitcapr.errors import UserError
from vitcapr.formats.int8 import quantise, stored_dtype
from vitcapr.formats.manifest import Manifest
from vitcapr.formats.store_manifest import FORMAT, SCALE
from vitcapr.progress import Reporter, format_bytes
from vitcapr.store.known_rows import KnownRows, read_row_digests, write_row_digests
from vitcapr.store.layout import ArrayLayout, Rows, checksum_path, row_ranges
from vitcapr.store.writer import TERMS, StoreWriter, claimed, fingerprint_of, read_layouts, store_folder
from vitcapr.workers import usable_cores

_BATCHES_AHEAD = 3
"""Batches that a GPU has been given and not finished; more would only take memory."""
_WRITERS = 4
"""Threads that write the chunks of a GPU, which makes features faster than one thread digests them."""


@dataclass(frozen=True)
class StorePlan:
    """A store that is to be filled, in the folder ``stores``.

    ``recipe`` has the attributes that decide, with ``code``, the features of a row.
    """

    stores: Path
    rows: Rows
    recipe: Mapping[str, Any]
    chunk: int
    code: str
    terms: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _origin(self) -> dict[str, Any]:
        return {**self.recipe, f"{self.rows.kind}s_sha256": self.rows.sha256}

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_of({**self._origin, "chunk": self.chunk, "format": FORMAT, "code": self.code})

    @property
    def folder(self) -> Path:
        return store_folder(self.stores, self.fingerprint)

    @property
    def chunks(self) -> int:
        return -(-len(self.rows) // self.chunk)

    def attributes(self, grid: tuple[int, int]) -> dict[str, Any]:
        attributes = {**self._origin, "fingerprint": self.fingerprint, "code": self.code, TERMS: dict(self.terms)}
        return attributes if grid == NO_GRID else {**attributes, "grid": list(grid)}

    def known_rows(
        self, chunks: range, arrays: Mapping[str, ArrayLayout], reuse: bool, say: Callable[[str], None]
    ) -> KnownRows:
        """Return the rows of ``chunks`` that other stores of the same recipe hold; none without ``reuse``."""
        digests = read_row_digests(self.folder)[chunks.start * self.chunk : chunks.stop * self.chunk]
        if not reuse:
            return KnownRows.none(len(digests), self.chunk, chunks.start)
        recipe = {**self.recipe, "code": self.code}
        return KnownRows.find(self.stores, recipe, digests, self.chunk, chunks.start, self.folder, arrays, say)


class RowEncoder(Protocol):
    """Computes the arrays of a store; ``shapes`` are those of a row, ``summary`` is a line for the log."""

    shapes: Mapping[str, tuple[int, ...]]
    store_dtype: str
    grid: tuple[int, int]
    summary: str
    device: torch.device

    @property
    def waited(self) -> float:
        """Seconds spent waiting for the input of the encoder."""
        ...

    def compute(self, batches: Sequence[np.ndarray]) -> Generator[Mapping[str, Tensor], None, None]:
        """Return the arrays of each batch of rows, in order."""
        ...

    def remarks(self) -> list[str]:
        """Lines for the log after the last batch."""
        ...


def terms_of(data: Manifest, licence: str | None, source: str | None, checkpoint: Path | None) -> dict[str, Any]:
    """Return the licences and sources of the data set and of the network that computes the features."""
    terms: dict[str, Any] = {"data": {"name": data.dataset, "licence": licence, "source": source}}
    return terms if checkpoint is None else {**terms, "backbone": {"licence": stated_licence(checkpoint)}}


def fill(
    plan: StorePlan, chunks: range, load: Callable[[], RowEncoder], *, batch: int, reuse: bool, report: Reporter
) -> StoreWriter:
    """Write the chunks with the numbers ``chunks`` that are not finished, in order.

    Args:
        load: loads the encoder; not called if all chunks are finished.
        batch: rows that are computed together. No batch crosses chunks, so that the numbers of a chunk do not depend
            on the chunks that are computed in the same run.
        reuse: copy rows that other stores of the same recipe hold.
    """
    begun = StoreWriter(plan.folder, read_layouts(plan.folder))
    if begun.layouts and all(begun.checksums(index) for index in chunks):
        report.line(f"all {len(chunks)} chunks are in {plan.folder}")
        return begun
    encoder, kind = load(), plan.rows.kind
    writer = StoreWriter(plan.folder, _layouts(plan, encoder))
    with claimed(plan.folder, chunks, report.line):
        writer.begin({**plan.attributes(encoder.grid), **getattr(encoder, "remark", {})})
        write_row_digests(plan.folder, plan.rows)
        pending = [index for index in chunks if writer.checksums(index) is None]
        known = plan.known_rows(chunks, writer.layouts, reuse, report.line).without_damaged(pending, report.line)
        for index in pending:  # Not finished, whatever a killed process left.
            checksum_path(plan.folder, index).unlink(missing_ok=True)
        total, copied = len(known.source), known.count(pending)
        left = sum(len(known.missing(index)) for index in pending)
        report.line(f"{encoder.summary}, {left} of {total} {kind}s to do; store {plan.folder}")
        linked = 0
        for index in pending:
            if not len(known.missing(index)):
                if (files := known.whole(index)) and writer.link(index, files, known.copied(index)):
                    linked += known.count([index])
                else:
                    _write(writer, known, index, _chunk(writer.layouts, encoder.device))
        if copied:
            names = ", ".join(source.folder.name for source in known.sources)
            row_bytes = sum(layout.chunk_bytes for layout in writer.layouts.values()) // plan.chunk
            size = format_bytes((copied - linked) * row_bytes)
            links = f"; {linked} are hard links, which take no space" if linked else ""
            report.line(f"{copied} {kind}s copied from other stores ({names}, {size}{links}), {left} to compute")
        pending = [index for index in pending if len(known.missing(index))]
        # Check at the start, so that a long extraction does not fail at its end.
        if warning := writer.space_warning(len(pending)):
            report.line(warning)
        with report.track("extract", total, f"{kind}s", total - left) as bar:
            _compute(plan, pending, encoder, known, writer, batch, report, bar.advance)
    for remark in encoder.remarks():
        report.line(remark)
    return writer


def _layouts(plan: StorePlan, encoder: RowEncoder) -> dict[str, ArrayLayout]:
    def layout(shape: Sequence[int], dtype: str) -> ArrayLayout:
        return ArrayLayout.for_rows(plan.rows.kind, (len(plan.rows), *shape), plan.chunk, dtype)

    layouts = {}
    for name, shape in encoder.shapes.items():
        dtype = stored_dtype(name, encoder.store_dtype)
        layouts[name] = layout(shape, dtype)
        if dtype == "int8":
            layouts[name + SCALE] = layout(shape[-1:], "float16")
    return dict(sorted(layouts.items()))


def cut_batches(chunks: Sequence[int], known: KnownRows, batch: int) -> list[np.ndarray]:
    """Return the rows that have to be computed, cut into batches, none of which crosses chunks."""
    missing = [known.missing(index) for index in chunks]
    return [rows[first : first + batch] for rows in missing for first in range(0, len(rows), batch)]


def _compute(
    plan: StorePlan,
    chunks: Sequence[int],
    encoder: RowEncoder,
    known: KnownRows,
    writer: StoreWriter,
    batch: int,
    report: Reporter,
    advance: Callable[[int], None],
) -> None:
    batches, on_gpu = cut_batches(chunks, known, batch), encoder.device.type == "cuda"
    writers = min(_WRITERS, usable_cores()) if on_gpu else 1
    begin, waited = time.perf_counter(), 0.0
    launched: deque[Callable[[], None]] = deque()
    writing: deque[Future[None]] = deque()
    chunk: dict[str, Tensor] = {}
    extremes: list[tuple[str, np.ndarray, Tensor]] = []

    def write(
        index: int,
        chunk: Mapping[str, Tensor],
        extremes: Sequence[tuple[str, np.ndarray, Tensor]],
        wait: Callable[[], None],
    ) -> None:
        wait()
        for name, rows, values in extremes:
            _check_range(values, writer.layouts[name].dtype, rows, plan.rows)
        _write(writer, known, index, chunk)

    def finish(most: int) -> None:
        """Wait until at most ``most`` chunks are being written."""
        nonlocal waited
        since = time.perf_counter()
        while len(writing) > most:
            writing.popleft().result()
        waited += time.perf_counter() - since

    with ThreadPoolExecutor(writers, thread_name_prefix="write") as pool, closing(encoder.compute(batches)) as computed:
        for rows, features in zip(batches, computed, strict=True):
            index = int(rows[0]) // plan.chunk
            chunk = chunk or _chunk(writer.layouts, encoder.device)
            for name, values in features.items():
                arrays, range_of_rows = _as_stored(name, values, writer.layouts[name].dtype)
                for stored, numbers in arrays.items():
                    _place(numbers, chunk[stored], rows - index * plan.chunk)
                if range_of_rows is not None:
                    host = host_buffer(range_of_rows.shape, range_of_rows.dtype, encoder.device)
                    to_host(range_of_rows, host)
                    extremes.append((name, rows, host))
            launched.append(copies_to_host(encoder.device))
            if len(launched) > _BATCHES_AHEAD:
                launched.popleft()()
            advance(len(rows))
            if rows[-1] == known.missing(index)[-1]:
                finish(writers - 1)
                writing.append(pool.submit(write, index, chunk, extremes, launched[-1]))
                chunk, extremes = {}, []
        finish(0)
    if batches:
        seconds = time.perf_counter() - begin
        waits = {"input": encoder.waited, "disk": waited, encoder.device.type: seconds - encoder.waited - waited}
        shares = ", ".join(f"{share / seconds:.0%} for {name}" for name, share in waits.items())
        report.line(f"waited in {seconds:.1f} s: {shares}")


def _chunk(layouts: Mapping[str, ArrayLayout], device: torch.device) -> dict[str, Tensor]:
    """Return host memory for a chunk of each array. Pinned memory is reused: fresh pages cost more than copies."""
    return {
        name: host_buffer((layout.chunk, *layout.shape[1:]), getattr(torch, layout.dtype), device)
        for name, layout in layouts.items()
    }


def _write(writer: StoreWriter, known: KnownRows, index: int, chunk: Mapping[str, Tensor]) -> None:
    """Write a chunk whose computed rows are in place, with the known ones."""
    arrays = {name: array.numpy() for name, array in chunk.items()}
    known.fill(index, arrays)
    writer.write(index, arrays, known.copied(index))


def _place(values: Tensor, chunk: Tensor, places: np.ndarray) -> None:
    """Copy the rows of ``values`` to their ``places`` in the chunk, each run of neighbours at once."""
    first = 0
    for begin, end in row_ranges(places):
        to_host(values[first : first + end - begin], chunk[begin:end])
        first += end - begin


def _as_stored(name: str, features: Tensor, dtype: str) -> tuple[dict[str, Tensor], Tensor | None]:
    """Return the arrays of a store for ``features`` of some rows, and the range of each row, (2, B).

    The range is None for pixels.
    """
    if dtype == "uint8":
        return {name: features}, None
    axes = tuple(range(1, features.ndim))
    extremes = torch.stack([features.amin(axes), features.amax(axes)])
    if dtype == "int8":
        steps, scale = quantise(features)
        return {name: steps, name + SCALE: scale}, extremes
    return {name: features.to(DTYPES[dtype])}, extremes


def _check_range(extremes: Tensor, dtype: str, rows: np.ndarray, table: Rows) -> None:
    """Raise a :class:`UserError` for the first row with a number that is not finite, or not once it is stored."""
    finite = torch.isfinite(extremes.to(DTYPES.get(dtype, torch.float16))).all(0)
    if finite.all():
        return
    position = finite.tolist().index(False)
    overflow = bool(torch.isfinite(extremes[:, position]).all())
    raise UserError(
        f"the features of {table.kind} '{table.ids[rows[position]]}' are "
        + ("too large for the store's dtype" if overflow else "not finite"),
        where=table.texts(rows[position : position + 1])[0],
        remedy="set store_dtype: float32" if overflow else "set dtype: float32, or check the model's weights",
    )
