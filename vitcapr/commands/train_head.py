"""Train projection heads on two feature stores: image features and text features."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from vitcapr.commands.main import Log, typed
from vitcapr.errors import UserError

if TYPE_CHECKING:
    import torch

    from vitcapr.batches.pairing import Pairing
    from vitcapr.config.retriever import RetrieverConfig
    from vitcapr.store.reader import FeatureStore

_AT = (1, 5, 10)


def main(
    images: Annotated[Path, typer.Option(help="Sealed manifest.json of image features with cls, or its folder.")],
    texts: Annotated[Path, typer.Option(help="Sealed manifest.json of text features, or its folder.")],
    output: Annotated[Path, typer.Option(help="Folder for the weights, the card and the history.")],
    head: Annotated[
        Literal["none", "linear", "mlp", "gated", "residual"], typer.Option(help="Head of both sides.")
    ] = "mlp",
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Parquet or CSV: image_id, caption_id and, if wanted, split (train, validation, test). Without it a "
            "caption belongs to the image that its id names before the last '#'."
        ),
    ] = None,
    embedding_dim: Annotated[int, typer.Option(help="Dimension of the shared space.")] = 768,
    hidden_dim: Annotated[int, typer.Option(help="Hidden width of mlp and residual.")] = 768,
    dropout: Annotated[float, typer.Option(help="Dropout rate, on the features and in the head.")] = 0.1,
    epochs: int = 8,
    batch_images: int = 128,
    learning_rate: float = 1e-3,
    seed: Annotated[int, typer.Option(help="Seed of the weights, the order and the split.")] = 0,
    log: Log = None,
) -> None:
    """Train projection heads and print Recall@K on images that were held out: 10 % unless --pairs has splits."""
    # A mistake in a path or in a value is found before torch, which takes seconds to load.
    store, sentences = _opened(images, "cls"), _opened(texts, "text")
    retriever = _config(
        epochs, batch_images, learning_rate, embedding_dim, head=head, hidden_dim=hidden_dim, dropout=dropout
    )
    import numpy as np

    from vitcapr.batches.pairing import pair_stores
    from vitcapr.batches.texts import FeatureTexts
    from vitcapr.encoders.precision import resolve_device
    from vitcapr.files import sha256_file
    from vitcapr.progress import Reporter
    from vitcapr.training.retriever import architecture_of, describe_text_encoder, train_dual_encoder

    with Reporter(log) as reporter:
        pairing = pair_stores(pairs, store.ids, sentences.ids, seed)
        sizes = ", ".join(f"{len(rows)} {name}" for name, rows in sorted(pairing.splits.items()))
        reporter.line(f"{len(pairing.caption_row)} captions of {len(np.unique(pairing.image_row))} images: {sizes}")
        architecture = architecture_of(retriever, store["cls"].shape[-1], text_dim=sentences["text"].shape[-1])
        train_dual_encoder(
            output,
            retriever,
            architecture,
            [store],
            FeatureTexts(sentences["text"], pairing.caption_row, pairing.image_row),
            train=pairing.splits["train"],
            validation=pairing.splits["validation"],
            seed=seed,
            card={
                "backbone": retriever.backbone,
                "code": "",
                "inputs": {
                    "features": store.fingerprint,
                    "text_features": sentences.fingerprint,
                    "pairs": None if pairs is None else sha256_file(pairs),
                },
                "settings": {"retriever": retriever.canonical(), "seed": seed},
                "text_encoder": describe_text_encoder(sentences),
            },
            reporter=reporter,
        )
        _print_recalls(output, store, sentences, pairing, resolve_device(retriever.training.device))


def _config(epochs: int, batch_images: int, learning_rate: float, embedding_dim: int, **head: Any) -> "RetrieverConfig":
    """The retriever configuration for the options; features are standardised."""
    from vitcapr.config.base import parse
    from vitcapr.config.retriever import RetrieverConfig

    side = {**head, "standardise": head["head"] != "none"}
    phase = {"epochs": epochs, "batch_images": batch_images, "learning_rate": learning_rate, "schedule": "cosine"}
    if side["head"] in ("none", "linear"):
        del side["hidden_dim"]
    values: dict[str, Any] = {
        "backbone": "images",
        "embedding_dim": embedding_dim,
        "learn_temperature": True,
        "image": {"pool": "cls", **side},
        "text": {"kind": "features", "encoder": "texts", **side},
        "training": {"phases": [] if head["head"] == "none" else [phase], "select_by": "rsum", "precision": "float32"},
    }
    return parse(RetrieverConfig, values, "the options")


def _opened(path: Path, array: str) -> "FeatureStore":
    from vitcapr.store.reader import open_features

    store = open_features(path)
    if array not in store:
        raise UserError(f"the store has no '{array}'", where=path, remedy=f"it has {', '.join(store)}")
    return store


def _print_recalls(
    folder: Path, store: "FeatureStore", sentences: "FeatureStore", pairing: "Pairing", device: "torch.device"
) -> None:
    """Print Recall@K of the held-out images and all their captions, and the size of the pool."""
    import numpy as np

    from vitcapr.formats.model import read_model
    from vitcapr.metrics.ranks import rank_matches
    from vitcapr.models.dual_encoder import build_dual_encoder
    from vitcapr.retrieval.embedder import embed_rows, embed_text_rows

    weights, card = read_model(folder)
    model = build_dual_encoder(card["architecture"]).to(device).eval()
    model.load_state_dict(weights)
    rows = pairing.splits["test"]
    held_out = np.isin(pairing.image_row, rows)
    of_images = embed_rows(model, [store], device).embed(rows)
    of_captions = embed_text_rows(model, sentences["text"], device).embed(pairing.caption_row[held_out])
    ranks = rank_matches(of_images, of_captions, np.searchsorted(rows, pairing.image_row[held_out]))
    print(f"Held out: {len(rows)} images, {int(held_out.sum())} captions")
    for name, ranked in (("image to text", ranks.i2t), ("text to image", ranks.t2i)):
        shares = "  ".join(f"R@{k} {100 * float(np.mean(ranked <= k)):.2f}" for k in _AT)
        print(f"{name}:  {shares}  median rank {float(np.median(ranked)):g}")


app = typed(main)
