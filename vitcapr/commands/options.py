"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Settings = Annotated[
    str,
    typer.Option("--settings", help="The stage's settings as JSON, or the path of a JSON file; {} for the defaults."),
]
Log = Annotated[Path | None, typer.Option("--log", help="A file that receives every line of progress.")]
Configfiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--configfile",
        help="An experiment's file instead of config.yaml; repeat the option to merge several, the last one wins.",
    ),
]
ManifestFile = Annotated[Path, typer.Option(help="manifest.json of the data set")]
AugmentedViews = Annotated[
    list[Path] | None,
    typer.Option(
        help="manifest.json of the features of an augmented view, if not the experiment's own; once for each view."
    ),
]
Sealed = Annotated[Path, typer.Argument(help="A sealed manifest.json, or the folder that holds it.")]
Arrays = Annotated[str | None, typer.Option(help="Only these arrays, separated by commas.")]
NamedBackbone = Annotated[str | None, typer.Option(help="Hub id or folder of the backbone, if not found by its name.")]
OwnVocabulary = Annotated[Path | None, typer.Option(help="vocabulary.json, if not the experiment's own.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Summary = Annotated[Path, typer.Argument(help="summary.csv")]
