"""Train projection heads on two stores of your own."""

from pathlib import Path
from typing import Annotated, Any

import typer

from vitcapr.api.steps import train_head
from vitcapr.commands.evaluate import print_scores
from vitcapr.commands.main import options_of, typer_app


@options_of(train_head)
def main(
    images: Annotated[Path, typer.Option(help="Sealed manifest.json of image features with cls, or its folder.")],
    texts: Annotated[Path, typer.Option(help="Sealed manifest.json of text features, or its folder.")],
    output: Annotated[Path, typer.Option(help="Folder for the weights, the card and the history.")],
    **options: Any,
) -> None:
    """Train projection heads and score them on images that were held out: 10 % unless --pairs has splits."""
    evaluation = train_head(images, texts, output, **options)
    print_scores(evaluation, f"{len(evaluation.per_image)} images that were held out")


app = typer_app(main)
