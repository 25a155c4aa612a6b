"""A stage of the workflow from Python, and what is more than one: a shared extraction, and heads on two stores."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, TypeAdapter

from vitcapr.api.captioner import Device
from vitcapr.config.base import find_backbone
from vitcapr.config.reading import parse
from vitcapr.config.retriever import Head, RetrieverConfig
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.pipeline.paths import stores_root
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import Role, find_stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.api.evaluation import Evaluation
    from vitcapr.store.reader import FeatureStore

AnyPath = str | os.PathLike[str]


def run(stage: str, settings: Mapping[str, Any] | None = None, **values: Any) -> None:
    """Run a stage of the workflow: the same files, the same bytes. A repeated call continues after an interruption.

    Examples:
        >>> study = {"manifest": "study/data", "vocabulary": "study/text/vocabulary.json"}
        >>> vitcapr.run("vocabulary", **study, tokens="study/text/tokens.npz")  # doctest: +SKIP

    Args:
        stage: its name. docs/stages.md lists all, and ``vitcapr stage NAME --help`` explains the keys of one.
        settings: its settings as keys of the configuration, with the defaults of the configuration.
        values: its files and values by their keys. A folder with a data set or with features stands for
            the ``manifest.json`` in it. Without ``stores``, feature stores are in ``VITCAPR_STORES``, or in
            ``results/stores``.

    Raises:
        UserError: a key or a setting is missing, unknown or wrong; or the stage says what it lacks.
    """
    declared = find_stage(stage)
    try:
        plain = TypeAdapter(Any).dump_python(settings or {}, mode="json")
    except ValueError as error:
        raise UserError(f"a setting must be a text, a number, a list or a dictionary: {error}", where=stage) from error
    if "stores" in declared.options:
        values = {"stores": str(stores_root()), **values}
    for each in declared.of_role(Role.INPUT):
        if each.name in values and not each.files:
            values[each.name] = _sealed(values[each.name])
    run_stage(declared, **values, **({"settings": plain} if plain else {}))


def _sealed(value: Any) -> Any:
    """Folders as the ``manifest.json`` in them."""
    if isinstance(value, str | os.PathLike):
        return Path(value) / "manifest.json" if Path(value).is_dir() else Path(value)
    return [_sealed(each) for each in value] if isinstance(value, list | tuple) else value


def extract(
    data: AnyPath,
    backbone: str,
    out: AnyPath,
    *,
    device: Device = "auto",
    batch: int = 32,
    chunk: int | None = None,
    rank: Annotated[int, Field(ge=0)] = 0,
    of: Annotated[int, Field(ge=1)] = 1,
    **settings: Any,
) -> Path:
    """Compute the features of every image of a data set with a frozen backbone.

    The arrays lie in ``VITCAPR_STORES``, or in ``stores`` beside ``out``. ``vitcapr.open_features(out)`` opens them.
    Several processes, on any machines that share this folder, can fill one store: each is called with its ``rank``, and
    :func:`seal` ends it. What is stored is skipped, so that a killed rank loses one chunk.

    Args:
        data: the data set.
        backbone: hub id or folder of the checkpoint.
        out: folder for the manifest of the features. Models know the backbone by the name of this folder.
        device: the device: auto, cpu or cuda.
        batch: images per forward pass.
        chunk: images per chunk of the store; None: 1,024 with ``patches`` none or ``output`` aligned, else 64.
        rank, of: the share of the images to compute, counted from 0, and the number of shares.
        settings: the keys of an entry of ``backbones``, such as ``image_size``.

    Raises:
        UserError: the checkpoint is not found or not supported.
    """
    if rank >= of:
        raise UserError(f"rank {rank} is not below {of}, the number of shares", remedy="ranks are counted from 0")
    folder, sealed = find_backbone(backbone), _manifest(out)
    files = {"manifest": data, "stores": str(stores_root(sealed.parent.parent))}
    part = sealed.parent / "parts" / f"{rank}.json"
    local = {"backbone": folder} if folder.is_dir() else {}
    plain = {
        "backbone": {"source": backbone, **settings},
        "features": {"batch": batch, "chunk": chunk},
    }
    run("extract", plain, part=part, task=rank, tasks=of, device=device, **files, **local)
    return seal(data, out) if of == 1 else Path(out)


def seal(data: AnyPath, out: AnyPath) -> Path:
    """Check that all chunks of a store that several ranks filled are there, and write its manifest.

    Args:
        data, out: those of :func:`extract`.

    Raises:
        UserError: a rank has not ended, or they had different settings.
    """
    sealed = _manifest(out)
    stores = str(stores_root(sealed.parent.parent))
    # The newest says which store it is. The chunks are all checked, and earlier calls may have left other parts.
    parts = sorted(sealed.parent.glob("parts/*.json"), key=lambda path: path.stat().st_mtime_ns)[-1:]
    run("seal", parts=parts, sealed=sealed, manifest=data, stores=stores)
    return Path(out)


def train_head(
    images: AnyPath,
    texts: AnyPath,
    out: AnyPath,
    *,
    pairs: str | Path | None = None,
    head: Head = "mlp",
    embedding_dim: int = 768,
    hidden_dim: int = 768,
    dropout: float = 0.1,
    epochs: int = 8,
    batch_images: int = 128,
    learning_rate: float = 1e-3,
    seed: int = 0,
    log: Path | None = None,
) -> "Evaluation":
    """Train projection heads on a store of images and a store of texts, and score them on images that were held out.

    Args:
        images, texts: sealed features with ``cls`` and with ``text``.
        out: folder for the weights, the card and the history, as the stage ``train_retriever`` writes them.
        pairs: Parquet or CSV with image_id, caption_id and optionally split (train, validation, test); by default, a
            caption belongs to the image that its id names before the last '#'.
        head: head of both sides.
        embedding_dim: dimension of the shared space.
        hidden_dim: hidden width of mlp, gated and residual.
        dropout: dropout rate, on the features and in the head.
        epochs: number of epochs.
        batch_images: images in a batch, with all their captions.
        learning_rate: first learning rate; it falls to 0 along a cosine.
        seed: seed of the weights, the order and the split.
        log: a file that receives every line of progress.

    Returns:
        Recall@K and ranks of the held-out images and all their captions.

    Raises:
        UserError: a store lacks its array, or the pairs do not fit the stores.
    """
    # A mistake in a path or in a value is found before torch, which takes seconds to load.
    store, sentences = _opened(images, "cls"), _opened(texts, "text")
    side = {"head": head, "hidden_dim": hidden_dim, "dropout": dropout, "standardise": head != "none"}
    if head in ("none", "matrix", "linear"):
        del side["hidden_dim"]
    phase = {"epochs": epochs, "batch_images": batch_images, "learning_rate": learning_rate, "schedule": "cosine"}
    values: dict[str, Any] = {
        "backbone": "images",
        "embedding_dim": embedding_dim,
        "image": {"pool": "cls", **side},
        "text": {"kind": "features", "encoder": "texts", **side},
        "training": {"phases": [] if head == "none" else [phase], "precision": "float32"},
    }
    retriever, table = parse(RetrieverConfig, values, "the options"), None if pairs is None else Path(pairs)
    import numpy as np

    from vitcapr.api.evaluation import evaluate_retrieval
    from vitcapr.batches.pairing import pair_stores
    from vitcapr.batches.sources import feature_dims
    from vitcapr.batches.texts import FeatureTexts
    from vitcapr.encoders.precision import resolve_device
    from vitcapr.retrieval.embedder import embed_texts, open_retriever, rows_of
    from vitcapr.training.retriever import architecture_of, describe_text_encoder, train_dual_encoder

    target = resolve_device("auto")
    inputs = {"features": store.fingerprint, "text_features": sentences.fingerprint}
    with Reporter(log) as reporter:
        pairing = pair_stores(table, store.ids, sentences.ids, seed)
        sizes = ", ".join(f"{len(rows)} {name}" for name, rows in sorted(pairing.splits.items()))
        reporter.line(f"{len(pairing.caption_row)} captions of {len(np.unique(pairing.image_row))} images: {sizes}")
        train_dual_encoder(
            Path(out),
            retriever,
            architecture_of(retriever, feature_dims(store, ["cls"]), text_dim=sentences["text"].shape[-1]),
            [store],
            FeatureTexts(sentences["text"], pairing.caption_row, pairing.image_row),
            train=pairing.splits["train"],
            validation=pairing.splits["validation"],
            seed=seed,
            device=target,
            card={
                "backbone": retriever.backbone,
                "code": "",
                "inputs": {**inputs, "pairs": None if table is None else sha256_file(table)},
                "settings": {"retriever": retriever.canonical(), "seed": seed},
                "text_encoder": describe_text_encoder(sentences),
            },
            reporter=reporter,
        )
    opened = open_retriever(Path(out), vocabulary=None, device=target)
    rows = pairing.splits["test"]
    held_out = np.isin(pairing.image_row, rows)
    return evaluate_retrieval(
        opened.image_embedder(store).embed(rows),
        embed_texts(opened.model, rows_of(sentences["text"]), opened.device).embed(pairing.caption_row[held_out]),
        image_of_text=np.searchsorted(rows, pairing.image_row[held_out]),
    )


def _opened(path: AnyPath, array: str) -> "FeatureStore":
    from vitcapr.store.reader import open_features

    store = open_features(Path(path))
    if array not in store:
        raise UserError(f"the store has no '{array}'", where=path, remedy=f"it has {', '.join(store)}")
    return store


def _manifest(path: AnyPath) -> Path:
    """``manifest.json`` in a folder that may not exist yet, or a path of such a file."""
    return Path(path) if Path(path).suffix == ".json" else Path(path) / "manifest.json"
