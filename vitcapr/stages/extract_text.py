"""Run all captions through a frozen text encoder into a sealed feature store."""

from pathlib import Path
from typing import Any

from vitcapr.config.base import StageSettings
from vitcapr.config.features import FeaturesConfig
from vitcapr.config.terms import Terms
from vitcapr.config.text_encoder import TextEncoderConfig
from vitcapr.formats.kinds import ManifestFile, TextFeaturesFile
from vitcapr.pipeline.stage import CodeHash, In, Out, StoreRoot, stage
from vitcapr.progress import Reporter


class ExtractTextSettings(StageSettings):
    text_encoder: TextEncoderConfig
    reuse: bool = FeaturesConfig().reuse
    terms: Terms = Terms()

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "ExtractTextSettings":
        encoder = config.text_encoders[wildcards.encoder]
        return cls(text_encoder=encoder, reuse=config.features.reuse, terms=Terms.of(config.data))


@stage(device="text_encoder.device", execution_only={"text_encoder.batch", "reuse", "stores", "terms"})
def extract_text(
    manifest: In[ManifestFile],
    stores: StoreRoot,
    settings: ExtractTextSettings,
    report: Reporter,
    code: CodeHash,
    sealed: Out[TextFeaturesFile],
) -> None:
    """Extract features of every caption. After an interruption, the same command continues."""
    from vitcapr.encoders.precision import dtype_name, memory_line, resolve_device, resolve_dtype
    from vitcapr.encoders.text_encoders import (
        WordVectorEncoder,
        load_text_encoder,
        locate_text_encoder,
        text_encoder_digest,
    )
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.store_manifest import FORMAT
    from vitcapr.store.claims import claimed
    from vitcapr.store.fill_texts import CHUNK, TEXT, encode_captions, text_layout
    from vitcapr.store.known_rows import KnownRows, write_row_digests
    from vitcapr.store.layout import rows_in
    from vitcapr.store.origin import caption_digests, captions_digest, source_name, terms_of
    from vitcapr.store.seal import write_sealed
    from vitcapr.store.writer import TERMS, StoreWriter, fingerprint_of, finished, read_layouts, store_folder

    wanted = settings.text_encoder
    data = read_manifest(manifest)
    captions = data.captions
    device = resolve_device(wanted.device)
    checkpoint = locate_text_encoder(wanted.source, wanted.revision, wanted.output)
    hidden = wanted.output == "hidden"
    dtype = WordVectorEncoder.dtype if wanted.output == "word_vectors" else resolve_dtype(wanted.dtype, device)
    recipe = {
        "backbone": source_name(wanted.source),
        "revision": checkpoint.revision,
        "weights_sha256": text_encoder_digest(checkpoint.folder),
        "output": wanted.output,
        "pool": wanted.pool if hidden else None,
        "max_length": wanted.max_length,
        "dtype": dtype_name(dtype),
        "store_dtype": wanted.store_dtype,
    }
    origin = {**recipe, "captions_sha256": captions_digest(captions)}
    fingerprint = fingerprint_of({**origin, "chunk": CHUNK, "format": FORMAT, "code": code})
    terms = terms_of(data, settings.terms.licence, settings.terms.source, checkpoint.folder)
    attributes = {**origin, "fingerprint": fingerprint, "code": code, TERMS: terms}
    folder = store_folder(Path(stores), fingerprint)
    chunks = range(-(-len(captions) // CHUNK))
    layouts = read_layouts(folder)
    if layouts is not None and all(finished(folder, layouts, index) for index in chunks):
        report.line(f"{wanted.source}: all {len(chunks)} chunks are in {folder}")
    else:
        encoder = load_text_encoder(
            wanted.source,
            revision=wanted.revision,
            pool=wanted.pool,
            dtype=wanted.dtype,
            device=device,
            max_length=wanted.max_length,
            output=wanted.output,
        )
        digests = caption_digests(captions)
        known = KnownRows.none(len(captions), CHUNK)
        if settings.reuse:
            known = KnownRows.find(Path(stores), {**recipe, "code": code}, digests, CHUNK, except_for=folder)
        layouts = {TEXT: text_layout(len(captions), encoder.dim, wanted.store_dtype)}
        writer = StoreWriter(folder, layouts)
        with claimed(folder, chunks, report.line):
            writer.begin(attributes, captions["caption_id"].tolist(), identity="caption_id")
            write_row_digests(folder, digests)
            pending = [index for index in chunks if writer.checksums(index) is None]
            report.line(
                f"{wanted.source}: vectors of {encoder.dim}, {f'pool {wanted.pool}' if hidden else wanted.output}, "
                f"{dtype_name(encoder.dtype)}, {rows_in(pending, CHUNK, len(captions)) - known.count(pending)} of "
                f"{len(captions)} captions to do; store {folder}"
            )
            pending = [index for index in pending if not known.copy_chunk(index, writer)]
            encode_captions(
                pending,
                captions,
                encoder,
                writer,
                known,
                batch=wanted.batch,
                max_length=wanted.max_length,
                reporter=report,
            )
        report.line(memory_line(encoder.model, device))
    writer = StoreWriter(folder, layouts)
    checksums = [(writer.checksums(index) or {})[TEXT] for index in chunks]
    write_sealed(writer, {TEXT: checksums}, "caption_id", sealed)
