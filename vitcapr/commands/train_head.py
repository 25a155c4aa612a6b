"""Train projection heads on two feature stores: image features and text features."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import Log, typed
from vitcapr.config.retriever import Head


def main(
    images: Annotated[Path, typer.Option(help="Sealed manifest.json of image features with cls, or its folder.")],
    texts: Annotated[Path, typer.Option(help="Sealed manifest.json of text features, or its folder.")],
    output: Annotated[Path, typer.Option(help="Folder for the weights, the card and the history.")],
    head: Annotated[Head, typer.Option(help="Head of both sides.")] = "mlp",
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
    """Train projection heads and score them on images that were held out: 10 % unless --pairs has splits."""
    from vitcapr.api.steps import train_head
    from vitcapr.commands.evaluate import print_scores

    found = train_head(
        images,
        texts,
        output,
        pairs=pairs,
        head=head,
        embedding_dim=embedding_dim,
        hidden_dim=hidden_dim,
        dropout=dropout,
        epochs=epochs,
        batch_images=batch_images,
        learning_rate=learning_rate,
        seed=seed,
        log=log,
    )
    print_scores(found, f"{len(found.per_image)} images that were held out")


app = typed(main)
