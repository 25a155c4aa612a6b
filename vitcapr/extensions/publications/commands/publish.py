"""Publish the results of an experiment with what verifies them."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import Configfiles, split_commas, typer_app
from vitcapr.progress import print_lines


def main(
    results: Annotated[Path, typer.Argument(help="Folder of the experiment, results/NAME.")],
    target: Annotated[str, typer.Argument(help="A folder, a .zip, s3://BUCKET/PATH, hf://OWNER/NAME, ...")],
    configfile: Configfiles = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help="Leave out a part: models, features, references, captions or embeddings."),
    ] = None,
) -> None:
    """Publish the tables of an experiment with what verifies them: models, features, references and captions.

    No photographs, no training set. Without --configfile, config.yaml or the file in experiments/ of this name counts.
    """
    from vitcapr.commands.gc import configurations
    from vitcapr.errors import UserError
    from vitcapr.experiment.experiment import read_config
    from vitcapr.extensions.publications.contents import part_of
    from vitcapr.extensions.publications.publishing import Plan, publish
    from vitcapr.progress import Reporter

    files = configfile or next(iter(configurations([]).get(results.resolve().name, [])), None)
    if files is None:
        raise UserError("no configuration of this experiment found", where=results, remedy="name it with --configfile")
    config = read_config(*files)
    parts = [part for each in without or [] for part in split_commas(each)]
    with tempfile.TemporaryDirectory() as scratch:
        digest = publish(results, target, config, parts, Reporter(), Path(scratch))
    if parts:
        plan = Plan(results, parts)
        lost = [run.name for run in plan.jobs if any(part_of(run.place(path)) in parts for path in run.inputs)]
        print_lines(f"without {', '.join(parts)}, nobody can verify: {', '.join(lost)}")
    print_lines(f"published at {target}, digest {digest}", f"vitcapr verify {target}")


app = typer_app(main)
