"""Convert a ViT checkpoint of timm to a backbone."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typed
from vitcapr.encoders.checkpoints import locate
from vitcapr.encoders.timm_checkpoint import convert_timm
from vitcapr.progress import print_lines


def main(
    source: Annotated[str, typer.Argument(help="A hub id, or a folder with config.json and model.safetensors.")],
    folder: Annotated[Path, typer.Argument(help="Folder to write, for example in VITCAPR_BACKBONES.")],
    revision: Annotated[str, typer.Option(help="Commit on the hub.")] = "main",
) -> None:
    """Convert a plain ViT of timm to the format of transformers."""
    convert_timm(locate(source, revision).folder, folder)
    print_lines(f"in an experiment: source: {folder.name} (with VITCAPR_BACKBONES={folder.resolve().parent})")


app = typed(main)
