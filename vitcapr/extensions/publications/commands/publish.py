"""Publish the results of an experiment with what verifies them."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from vitcapr.commands.main import Configfiles, split_commas, typer_app
from vitcapr.errors import UserError
from vitcapr.progress import Reporter, print_lines


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
    from vitcapr.extensions.publications.publication import lost_part
    from vitcapr.extensions.publications.publishing import Plan, publish

    config = configurations_of(results, configfile)[0]
    plan = Plan(results, [part for each in without or [] for part in split_commas(each)])
    with tempfile.TemporaryDirectory() as scratch:
        digest = publish(plan, target, config, Reporter(), Path(scratch))
    if lost := [run.name for run in plan.jobs if lost_part(run, plan.without)]:
        print_lines(f"without {', '.join(plan.without)}, nobody can verify: {', '.join(lost)}")
    print_lines(f"published at {target}, digest {digest}", f"vitcapr verify {target}")


def configurations_of(experiment: Path, configfile: list[Path] | None) -> list[Any]:
    """Return the configuration in the given files; without files, every known one of the experiment in a folder.

    Raises:
        UserError: none is known.
    """
    from vitcapr.commands.gc import configurations
    from vitcapr.experiment.experiment import read_config

    files = [configfile] if configfile else configurations([]).get(experiment.resolve().name)
    if not files:
        remedy = "name it with --configfile"
        raise UserError("no configuration of this experiment found", where=experiment, remedy=remedy)
    return [read_config(*some) for some in files]


app = typer_app(main)
