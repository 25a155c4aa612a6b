"""Run all captions through a frozen text model into a sealed feature store."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import torch
import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Log, ManifestFile, SealedOutput, Settings, StoreCode, Stores
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.text_encoder import ExtractTextSettings, TextEncoderConfig
from vitcapr.errors import UserError
from vitcapr.features.encoders.loading import memory_line
from vitcapr.features.encoders.precision import dtype_name, resolve_device, resolve_dtype
from vitcapr.features.encoders.text_encoders import (
    TextEncoder,
    load_text_encoder,
    locate_text_encoder,
    text_encoder_digest,
)
from vitcapr.features.encoders.word_vectors import WordVectorEncoder
from vitcapr.features.store.claims import claimed
from vitcapr.features.store.layout import FORMAT, ArrayLayout
from vitcapr.features.store.seal import write_sealed
from vitcapr.features.store.writer import StoreWriter, fingerprint_of, finished, read_layouts, store_folder
from vitcapr.files import canonical_json, sha256_bytes
from vitcapr.progress import Reporter

CHUNK = 1024
"""Captions in one chunk of the store: under a megabyte, and a killed run loses a second or two of work."""


def main(
    manifest: ManifestFile,
    stores: Stores,
    output: SealedOutput,
    settings: Settings,
    source: Annotated[
        str | None, typer.Option(help="Hub id or folder of the text model; the settings' own if not given.")
    ] = None,
    code: StoreCode = "",
    log: Log = None,
) -> None:
    """Extract features of every caption; run again after a stop, it continues where it was."""
    wanted = parse_settings(ExtractTextSettings, settings).text_encoder
    with Reporter(log) as reporter:
        captions = read_manifest(manifest).captions
        device = resolve_device(wanted.device)
        checkpoint = locate_text_encoder(source or wanted.source, wanted.revision, wanted.output)
        origin = {
            "backbone": _name(wanted.source),
            "revision": checkpoint.revision,
            "weights_sha256": text_encoder_digest(checkpoint.folder),
            "output": wanted.output,
            "pool": wanted.pool if wanted.output == "hidden" else None,
            "max_length": wanted.max_length,
            "dtype": dtype_name(_arithmetic(wanted, device)),
            "store_dtype": wanted.store_dtype,
            "captions_sha256": _captions_digest(captions),
        }
        fingerprint = fingerprint_of({**origin, "chunk": CHUNK, "format": FORMAT, "code": code})
        attributes = {**origin, "fingerprint": fingerprint, "code": code}
        folder = store_folder(stores, fingerprint)
        chunks = range(-(-len(captions) // CHUNK))
        layouts = read_layouts(folder)
        if layouts is not None and all(finished(folder, layouts, index) for index in chunks):
            reporter.line(f"{wanted.source}: all {len(chunks)} chunks stand in {folder}")
        else:
            encoder = load_text_encoder(
                source or wanted.source,
                revision=wanted.revision,
                pool=wanted.pool,
                dtype=wanted.dtype,
                device=device,
                max_length=wanted.max_length,
                output=wanted.output,
            )
            layouts = {
                "text": ArrayLayout((len(captions), encoder.dim), CHUNK, wanted.store_dtype, ("caption", "channel"))
            }
            writer = StoreWriter(folder, layouts)
            with claimed(folder, chunks, reporter.line):
                writer.begin(attributes, captions["caption_id"].tolist(), identity="caption_id")
                _fill(writer, captions, encoder, wanted, reporter)
            reporter.line(memory_line(encoder.model, device))
        writer = StoreWriter(folder, layouts)
        checksums = [(writer.checksums(index) or {})["text"] for index in chunks]
        write_sealed(writer, attributes, {"text": checksums}, "caption_id", output)


def _fill(
    writer: StoreWriter,
    captions: pd.DataFrame,
    encoder: TextEncoder | WordVectorEncoder,
    wanted: TextEncoderConfig,
    reporter: Reporter,
) -> None:
    """Compute and write the chunks that are not finished, in order."""
    pending = [index for index in range(-(-len(captions) // CHUNK)) if writer.checksums(index) is None]
    left = sum(min((index + 1) * CHUNK, len(captions)) - index * CHUNK for index in pending)
    reporter.line(
        f"{wanted.source}: vectors of {encoder.dim}, {_made(wanted)}, {dtype_name(encoder.dtype)}, "
        f"{left} of {len(captions)} captions to do; store {writer.folder}"
    )
    longest = unknown = 0
    with reporter.track("extract text", len(captions), "captions", len(captions) - left) as bar:
        for index in pending:
            writer.clear(index)
            table = captions.iloc[index * CHUNK : (index + 1) * CHUNK]
            tokens = encoder.tokenize(table["text"].tolist())
            longest += sum(len(of_caption) == wanted.max_length for of_caption in tokens)
            vectors = encoder.encode_tokens(tokens, wanted.batch)
            unknown += int((vectors == 0).all(axis=1).sum())
            writer.write(index, {"text": _chunk(vectors, table, wanted.store_dtype)})
            bar.advance(len(table))
    if longest:
        reporter.line(f"{longest} captions have max_length ({wanted.max_length}) tokens, or had more and were cut")
    if unknown:
        reporter.line(f"{unknown} captions have no word with a vector; theirs is zero")


def _arithmetic(wanted: TextEncoderConfig, device: torch.device) -> torch.dtype:
    return WordVectorEncoder.dtype if wanted.output == "word_vectors" else resolve_dtype(wanted.dtype, device)


def _made(wanted: TextEncoderConfig) -> str:
    return f"pool {wanted.pool}" if wanted.output == "hidden" else wanted.output


def _chunk(vectors: np.ndarray, captions: pd.DataFrame, dtype: str) -> np.ndarray:
    """``vectors`` as a whole chunk ``(CHUNK, D)`` in the store's dtype, filled up with zeros.

    Raises:
        UserError: a vector is not finite in that dtype.
    """
    chunk = np.zeros((CHUNK, vectors.shape[1]), dtype)
    with np.errstate(over="ignore"):
        chunk[: len(vectors)] = vectors
    finite = np.isfinite(chunk).all(axis=1)
    if not finite.all():
        position = int(np.argmin(finite))
        overflow = bool(np.isfinite(vectors[position]).all())
        what = "too large for the store's dtype" if overflow else "not finite"
        raise UserError(
            f"the features of caption '{captions['caption_id'].iloc[position]}' are {what}",
            where=captions["text"].iloc[position],
            remedy="set store_dtype: float32" if overflow else "set dtype: float32, or check the model's weights",
        )
    return chunk


def _name(source: str) -> str:
    """What a store is said to come from: the same on every machine, so never an absolute path."""
    return Path(source).name if Path(source).expanduser().is_absolute() else source


def _captions_digest(captions: pd.DataFrame) -> str:
    """Which captions, in which order, with which words."""
    return sha256_bytes(canonical_json(captions[["caption_id", "text"]].to_numpy().tolist()).encode("utf-8"))


if __name__ == "__main__":
    launch(main)
