"""List the files that descend from a photograph."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.progress import print_lines


def main(
    images: Annotated[list[str], typer.Argument(help="Ids of images, or files of photographs.")],
    results: Annotated[Path, typer.Option("--results", help="The folder of all results.")] = Path("results"),
) -> None:
    """List what contains a photograph, its vector or its captions, what was computed from it, and copies elsewhere."""
    from vitcapr.extensions.publications.descent import CONTAINS, COPIED, DERIVED, trace

    descendants = dict.fromkeys(one for image in images for one in trace(image, results))
    for kind in (CONTAINS, DERIVED, COPIED):
        some = [one for one in descendants if one.kind == kind]
        print_lines(f"{kind}: {len(some)}", *(f"  {one.place}  ({one.how})" for one in some))


app = typer_app(main)
