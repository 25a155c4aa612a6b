"""Withdraw photographs from a data set and from the stores."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import Configfiles, typer_app
from vitcapr.errors import UserError
from vitcapr.extensions.publications.commands.publish import configurations_of
from vitcapr.progress import print_lines


def main(
    images: Annotated[list[str], typer.Argument(help="Ids of images, or files of photographs.")],
    results: Annotated[Path, typer.Option("--results", help="The folder of all results.")] = Path("results"),
    configfile: Configfiles = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Withdraw them; without this option the command only says what it would do.")
    ] = False,
) -> None:
    """Put photographs on the list data.withdrawn, and overwrite their rows of all stores with zeros.

    The next run leaves them out everywhere, and vitcapr gc then removes what was computed from them.
    """
    from vitcapr.data.withdrawn import add_withdrawn
    from vitcapr.extensions.publications.descent import COPIED, PHOTOGRAPH, VECTOR, find_images, trace
    from vitcapr.extensions.publications.store_rows import erase_rows

    known = [pair for image in images for pair in find_images(image, results).items()]
    lists = {folder: _lists_of(folder, configfile) for folder, _ in known}
    descendants = dict.fromkeys(one for image in images for one in trace(image, results))
    for folder, items in known:
        for name in lists[folder]:
            path = add_withdrawn(name, items.image_id) if yes else name
            print_lines(f"{folder}: {', '.join(items.image_id)} on the list {path}")
    for store, how in ((Path(one.place), one.how) for one in descendants if one.how.startswith(VECTOR)):
        for _, items in known if yes else []:
            print_lines(*(f"  gone: {line}" for line in erase_rows(store, items)))
        if not yes:
            print_lines(f"  to be overwritten: {store}, {how}")
        if (store / "manifest.json").is_file():
            print_lines(f"  {store} was pulled or imported: pull or import it again without the image, before the run")
    left = [one for one in descendants if one.kind != COPIED]
    print_lines(f"{len(left)} files and stores hold or descend from it until the next run and gc (vitcapr trace)")
    print_lines(*dict.fromkeys(f"  {one.how}" for one in left if one.how.startswith("trained")))
    for one in descendants:
        if one.how == PHOTOGRAPH and results.resolve() not in Path(one.place).resolve().parents:
            print_lines(f"yours to delete: {one.place}")
        elif one.kind == COPIED:
            print_lines(f"cannot be reached: {one.place}  ({one.how})")
    print_lines("snakemake; vitcapr gc --yes" if yes else "nothing is changed: repeat the command with --yes")


def _lists_of(experiment: Path, configfile: list[Path] | None) -> set[str]:
    """Return the lists of withdrawn images that the configurations of an experiment name.

    Raises:
        UserError: one names no list.
    """
    lists = {config.data.withdrawn for config in configurations_of(experiment, configfile)}
    if None in lists:
        remedy = "add it under data, for example withdrawn: withdrawn.csv; the command makes the file"
        raise UserError("data.withdrawn is not set", where=experiment, remedy=remedy)
    return lists


app = typer_app(main)
