"""Options that the commands of trained models share."""

from typing import Annotated

import typer

Backbone = Annotated[str | None, typer.Option(help="Hub id or folder of the backbone, if not found by its name.")]
Decoding = Annotated[
    str | None, typer.Option(help="A decoding of the experiment (default: the one with the widest beam).")
]
NBest = Annotated[int | None, typer.Option("--n-best", "-n", min=1, help="Captions for each photograph.")]
BeamSize = Annotated[int | None, typer.Option(min=1, help="Number of hypotheses; 1 is greedy decoding.")]
LengthPenalty = Annotated[float | None, typer.Option(min=0, help="Replaces the length penalty of the decoding.")]
