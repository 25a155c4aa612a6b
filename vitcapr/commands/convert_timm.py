"""Convert a ViT checkpoint of timm to a folder that experiments name as a backbone."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typed
from vitcapr.encoders.timm_checkpoint import FILES, convert_timm
from vitcapr.errors import UserError


def main(
    source: Annotated[str, typer.Argument(help="A hub id, or a folder with config.json and model.safetensors.")],
    folder: Annotated[Path, typer.Argument(help="Folder to write, for example in VITCAPR_BACKBONES.")],
    revision: Annotated[str, typer.Option(help="Commit on the hub.")] = "main",
) -> None:
    """Convert a plain ViT of timm to the format of transformers."""
    convert_timm(_located(source, revision), folder)
    typer.echo(f"in an experiment: source: {folder.name} (with VITCAPR_BACKBONES={folder.resolve().parent})")


def _located(source: str, revision: str) -> Path:
    if Path(source).is_dir():
        return Path(source)
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(source, revision=revision, allow_patterns=list(FILES)))
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        what = f"'{source}' (revision {revision}) is neither a folder nor available from the hub"
        raise UserError(what, remedy="run where the hub can be reached, or download the two files by hand") from error


app = typed(main)
