"""The steps from photographs to scores, one function each: the stages that the workflow runs, with the same files.

Each function writes to ``out`` and returns that path, which the next function takes. Settings are the keys of the
configuration, with its defaults. Progress goes to standard error. A repeated call continues after an interruption.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, InstanceOf, TypeAdapter

from vitcapr.api.captioner import Device, TrainedCaptioner, load_captioner
from vitcapr.api.retriever import TrainedRetriever, load_retriever
from vitcapr.config.base import find_backbone
from vitcapr.config.reading import parse
from vitcapr.config.retriever import Head, RetrieverConfig
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.pipeline.paths import stores_root
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import find_stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from vitcapr.api.evaluation import Evaluation
    from vitcapr.store.reader import FeatureStore

AnyPath = str | os.PathLike[str]


def run(out: AnyPath, stage: str, settings: Mapping[str, Any], /, **values: Any) -> Path:
    """Run the stage of this name with its settings as plain values, and return the path of its result."""
    try:
        plain = TypeAdapter(Any).dump_python(settings, mode="json")
    except ValueError as error:
        raise UserError(f"a setting is no text, number, list or dictionary: {error}", where=stage) from error
    run_stage(find_stage(stage), **values, **({"settings": plain} if plain else {}))
    return Path(out)


def prepare_data(images: AnyPath, captions: AnyPath | list[AnyPath] | None, out: AnyPath, **settings: Any) -> Path:
    """Check photographs and captions, draw the splits, and write the data set.

    Args:
        images: folder or zip of the photographs.
        captions: a table of them (CSV, TSV, JSON lines, Parquet) or COCO's JSON, or a list of these; None: they are
            among the images.
        out: folder for the data set.
        settings: the keys of ``data.table``, such as ``splits``, ``test`` and ``limit``.

    Raises:
        UserError: photographs and captions do not match, or too many photographs are damaged.
    """
    tables = [str(table) for table in captions] if isinstance(captions, list) else captions and str(captions)
    files = {"images": str(images), "captions": tables}
    return run(out, "data_photographs", {"table": {**files, **settings}}, folder=Path(out))


def build_vocabulary(data: AnyPath, out: AnyPath, **settings: Any) -> Path:
    """Select the words of the training captions, and write every caption as word numbers.

    Args:
        data: the data set.
        out: folder for ``vocabulary.json`` and ``tokens.npz``.
        settings: the keys of ``text``, such as ``vocabulary={"min_count": 3}``.
    """
    files = {"vocabulary": Path(out) / "vocabulary.json", "tokens": Path(out) / "tokens.npz"}
    return run(out, "vocabulary", {"text": settings}, manifest=_manifest(data), **files)


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
    files = {"manifest": _manifest(data), "stores": str(stores_root(sealed.parent.parent))}
    part = sealed.parent / "parts" / f"{rank}.json"
    local = {"backbone": folder} if folder.is_dir() else {}
    plain = {
        "backbone": {"source": backbone, **settings},
        "features": {"device": device, "batch": batch, "chunk": chunk},
    }
    run(out, "extract", plain, part=part, task=rank, tasks=of, **files, **local)
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
    return run(out, "seal", {}, parts=parts, sealed=sealed, manifest=_manifest(data), stores=stores)


def extract_text(data: AnyPath, encoder: str, out: AnyPath, **settings: Any) -> Path:
    """Compute the features of every caption of a data set with a frozen text encoder.

    Args:
        data: the data set.
        encoder: hub id or folder of the checkpoint.
        out: folder for the manifest of the features. Retrievers know the encoder by the name of this folder.
        settings: the keys of an entry of ``text_encoders``, such as ``pool``.
    """
    sealed = _manifest(out)
    files = {"manifest": _manifest(data), "stores": str(stores_root(sealed.parent.parent)), "sealed": sealed}
    return run(out, "extract_text", {"text_encoder": {"source": encoder, **settings}}, **files)


def train_captioner(
    data: AnyPath,
    features: AnyPath,
    words: AnyPath,
    out: AnyPath,
    *,
    word_vectors: AnyPath | None = None,
    seed: int = 0,
    **settings: Any,
) -> Path:
    """Train a captioner. ``vitcapr.load_captioner(out)`` opens it.

    Args:
        data, features, words: as ``prepare_data``, ``extract`` and ``build_vocabulary`` write them.
        out: folder for the weights, the card and the history.
        word_vectors: folder of the vectors that initialise the word embedding, as the workflow writes them.
        seed: of the weights and of the training.
        settings: the keys of an entry of ``captioners``, such as ``architecture`` and ``training``.
    """
    captioner, files = {"backbone": _name(features), **settings}, _inputs(data, features, words)
    if word_vectors is not None:
        captioner["word_vectors"] = Path(word_vectors).name
        files["word_vectors"] = Path(word_vectors) / "vectors.npy"
    return run(out, "train_captioner", {"captioner": captioner, "seed": seed}, captioner=Path(out), **files)


def train_retriever(
    data: AnyPath,
    features: AnyPath,
    words: AnyPath,
    out: AnyPath,
    *,
    augmented_views: Sequence[AnyPath] = (),
    text_features: AnyPath | None = None,
    seed: int = 0,
    **settings: Any,
) -> Path:
    """Train a retriever. ``vitcapr.load_retriever(out)`` opens it.

    Args:
        data, features, words: as ``prepare_data``, ``extract`` and ``build_vocabulary`` write them.
        out: folder for the weights, the card and the history.
        augmented_views: features of augmented views of the images.
        text_features: features of the captions, for a text tower that reads them.
        seed: of the weights and of the training.
        settings: the keys of an entry of ``retrievers``, such as ``embedding_dim``, ``text`` and ``training``.
    """
    retriever = {"backbone": _name(features), "augmented_views": [_name(view) for view in augmented_views], **settings}
    if text_features is not None:
        retriever["text"] = {"kind": "features", "encoder": _name(text_features), **settings.get("text", {})}
    files = _inputs(data, features, words)
    files["augmented_views"] = [_manifest(view) for view in augmented_views] or None
    files["text_features"] = None if text_features is None else _manifest(text_features)
    return run(out, "train_retriever", {"retriever": retriever, "seed": seed}, retriever=Path(out), **files)


def decode(captioner: InstanceOf[TrainedCaptioner] | AnyPath, split: str, out: AnyPath) -> Path:
    """Caption every image of a split of the data set, and write ``captions.json`` in COCO's form.

    Args:
        captioner: as :func:`load_captioner` gives it, with its decoding; or its folder.
        split: ``train``, ``validation`` or ``test``.
        out: the file.
    """
    opened = captioner if isinstance(captioner, TrainedCaptioner) else load_captioner(Path(captioner))
    files = {"features": opened.features, "vocabulary": opened.vocabulary, "captioner": opened.folder}
    manifest = opened.files.file(None, "data/manifest.json", "--manifest")
    settings = {"decoding": opened.decoding.canonical()}
    return run(out, "decode", settings, manifest=manifest, split=split, captions=Path(out), **files)


def embed(retriever: InstanceOf[TrainedRetriever] | AnyPath, split: str, out: AnyPath, **settings: Any) -> Path:
    """Embed every image and caption of a split of the data set. ``vitcapr.evaluate_retrieval(out)`` scores them.

    Args:
        retriever: as :func:`load_retriever` gives it; or its folder.
        split: ``train``, ``validation`` or ``test``.
        out: the file ``.npz``.
        settings: the keys of ``embed``.
    """
    opened = retriever if isinstance(retriever, TrainedRetriever) else load_retriever(Path(retriever))
    files: dict[str, Any] = {
        "features": opened.stores[0],
        "augmented_views": list(opened.stores[1:]) or None,
        "manifest": opened.manifest,
        "vocabulary": opened.vocabulary,
        "text_features": opened.files.text_features(opened.text_features),
    }
    return run(out, "embed", {"embed": settings}, retriever=opened.folder, split=split, embeddings=Path(out), **files)


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
        out: folder for the weights, the card and the history, as :func:`train_retriever` writes them.
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
            card={
                "backbone": retriever.backbone,
                "code": "",
                "inputs": {**inputs, "pairs": None if table is None else sha256_file(table)},
                "settings": {"retriever": retriever.canonical(), "seed": seed},
                "text_encoder": describe_text_encoder(sentences),
            },
            reporter=reporter,
        )
    opened = open_retriever(Path(out), vocabulary=None, device=resolve_device(retriever.training.device))
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


def _name(features: AnyPath) -> str:
    return _manifest(features).resolve().parent.name


def _inputs(data: AnyPath, features: AnyPath, words: AnyPath) -> dict[str, Any]:
    """What every training reads."""
    text = {"vocabulary": Path(words) / "vocabulary.json", "tokens": Path(words) / "tokens.npz"}
    return {"features": _manifest(features), "manifest": _manifest(data), **text}
