"""Withdraw photographs from a data set and from the stores."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import Configfiles, typer_app
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
    from vitcapr.commands.gc import configurations
    from vitcapr.data.withdrawn import add_withdrawn
    from vitcapr.errors import UserError
    from vitcapr.experiment.experiment import read_config
    from vitcapr.extensions.publications.descent import CONTAINS, COPIED, DERIVED, find_images, trace
    from vitcapr.extensions.publications.store_rows import erase_rows, find_rows
    from vitcapr.pipeline.locations import stores_root
    from vitcapr.store.layout import GROUP

    known = [(folder, items) for image in images for folder, items in find_images(image, results).items()]
    lists = dict[Path, str]()
    for folder, _ in known:
        files = ([configfile] if configfile else configurations([]).get(folder.name)) or []
        if not files:
            remedy = "name it with --configfile"
            raise UserError("no configuration of this experiment found", where=folder, remedy=remedy)
        for data in (read_config(*some).data for some in files):
            if not getattr(data, data.dataset).can_withdraw:
                what = f"data.dataset: {data.dataset} has no list of withdrawn images"
                raise UserError(what, where=folder, remedy="remove them from the files of the data set, and run again")
            if data.withdrawn is None:
                remedy = "add it under data, for example withdrawn: withdrawn.csv; the command makes the file"
                raise UserError("data.withdrawn is not set", where=folder, remedy=remedy)
            lists[folder] = data.withdrawn
    descendants = list(dict.fromkeys(trace(images, results)))
    for folder, items in known:
        path = add_withdrawn(lists[folder], items.image_id) if yes else lists[folder]
        print_lines(f"{folder}: {', '.join(items.image_id)} on the list {path}")
    for store in sorted(path.parent for path in stores_root(results).glob(f"*/{GROUP}")):
        for items in (items for _, items in known):
            if yes:
                print_lines(*(f"  gone: {line}" for line in erase_rows(store, items)))
            elif rows := find_rows(store, items)[1]:
                print_lines(f"  to be overwritten: {store}, row {', '.join(map(str, rows))}")
        if (store / "manifest.json").is_file():
            print_lines(f"  {store} was pulled or imported: pull or import it again without the image, before the run")
    left = [one for one in descendants if one.kind in (CONTAINS, DERIVED)]
    print_lines(
        f"{len(left)} files and stores hold or descend from it until the next run and vitcapr gc (vitcapr trace)"
    )
    print_lines(*dict.fromkeys(f"  {one.how}" for one in left if one.how.startswith("trained")))
    photographs = [one.place for one in descendants if one.how == "the photograph"]
    outside = [place for place in photographs if results.resolve() not in Path(place).resolve().parents]
    print_lines(*(f"yours to delete: {place}" for place in outside))
    copies = [one for one in descendants if one.kind == COPIED]
    print_lines(*(f"cannot be reached: {one.place}  ({one.how})" for one in copies))
    print_lines("snakemake; vitcapr gc --yes" if yes else "nothing is changed: repeat the command with --yes")


app = typer_app(main)
