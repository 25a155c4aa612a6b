"""Compute the features of a data set, also by many processes without Snakemake."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.api import steps
from vitcapr.commands.main import Device, typer_app
from vitcapr.config.features import BackboneConfig
from vitcapr.config.reading import parse
from vitcapr.errors import UserError


def main(
    data: Annotated[Path, typer.Argument(help="manifest.json of the data set, or its folder.")],
    backbone: Annotated[str, typer.Argument(help="Hub id or folder of the checkpoint.")],
    output: Annotated[Path, typer.Argument(help="Folder for the manifest of the features.")],
    rank: Annotated[int, typer.Option(min=0, envvar="SLURM_ARRAY_TASK_ID", help="Share to compute, from 0.")] = 0,
    of: Annotated[
        int | None, typer.Option(min=1, help="Number of shares; by default that of the Slurm array, or 1.")
    ] = None,
    seal: Annotated[bool, typer.Option("--seal", help="Compute nothing: seal the store after all ranks.")] = False,
    settings: Annotated[str, typer.Option(help='Keys of a backbone as JSON, such as {"patches": 7}.')] = "{}",
    device: Device = "auto",
    batch: Annotated[int, typer.Option(min=1, help="Images per forward pass.")] = 32,
    chunk: Annotated[
        int | None, typer.Option(min=1, help="Images per chunk of the store, by default 64 or 1,024.")
    ] = None,
) -> None:
    """Compute the features of a share of the images; of all of them by default.

    Ranks write to one store and skip what it holds. Run the command with --seal when all have ended.
    """
    if seal:
        steps.seal(data, output)
        return
    try:
        keys = dict(json.loads(settings))
    except (ValueError, TypeError) as error:
        raise UserError(f"--settings is not an object in JSON: {error}") from error
    parse(BackboneConfig, {"source": backbone, **keys}, "--settings")  # A key such as batch is an option of its own.
    of = of or shares_of_array()
    steps.extract(data, backbone, output, device=device, batch=batch, chunk=chunk, rank=rank, of=of, **keys)


def shares_of_array() -> int:
    """Return the number of tasks of the Slurm array of this process, 1 without an array.

    Raises:
        UserError: the array is a part of another, such as a failed rank that is submitted again.
    """
    count, first, last = (int(os.environ.get(f"SLURM_ARRAY_TASK_{name}", 0)) for name in ("COUNT", "MIN", "MAX"))
    if count and (first, last) != (0, count - 1):
        remedy = "give the number of shares of the whole store with --of"
        raise UserError(f"the ranks of the Slurm array are {first} to {last}, not 0 to {count - 1}", remedy=remedy)
    return count or 1


app = typer_app(main)
