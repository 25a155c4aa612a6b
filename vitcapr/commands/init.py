"""Makes a folder for a study: Snakefile, configuration, one experiment and profiles."""

import difflib
import shutil
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typed
from vitcapr.errors import UserError
from vitcapr.experiment.packaged import WORKFLOW
from vitcapr.files import write_text

SNAKEFILE = """\
# The rules are part of the package vitcapr. Settings: config.yaml and experiments/.
from vitcapr.experiment.packaged import SNAKEFILE


# The file of an experiment replaces config.yaml.
if not workflow.overwrite_configfiles:

    configfile: "config.yaml"


module vitcapr:
    snakefile:
        SNAKEFILE
    config:
        config


use rule * from vitcapr
"""
IGNORED = ".snakemake/\nresults/\n"
EXPERIMENTS = WORKFLOW / "experiments"


def main(
    folder: Annotated[Path, typer.Argument(help="The folder of the study. It is made, and must be new or empty.")],
    experiment: Annotated[str, typer.Option(help="The experiment to start from, one of the package.")] = "template",
) -> None:
    """Make a folder from which snakemake runs: Snakefile, config.yaml, one experiment and profiles."""
    source = EXPERIMENTS / f"{experiment}.yaml"
    known = sorted(path.stem for path in EXPERIMENTS.glob("*.yaml"))
    if experiment not in known:
        close = difflib.get_close_matches(experiment, known, n=1)
        remedy = f"did you mean '{close[0]}'?" if close else f"there are {', '.join(known)}"
        raise UserError(f"no experiment '{experiment}'", where="--experiment", remedy=remedy)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError("the folder of a new study must be empty", where=folder, remedy="give another name")
    write_text(folder / "Snakefile", SNAKEFILE)
    write_text(folder / ".gitignore", IGNORED)
    (folder / "experiments").mkdir()
    shutil.copyfile(source, folder / "experiments" / source.name)
    shutil.copyfile(WORKFLOW / "config.yaml", folder / "config.yaml")
    shutil.copytree(WORKFLOW / "profiles", folder / "profiles")
    print(f"{folder}: a new study")
    print(f"  cd {folder}")
    print("  snakemake --cores 2                       the demo of config.yaml, on rendered pictures")
    print(f"  edit experiments/{source.name}, then")
    print(f"  snakemake --cores 2 --configfile experiments/{source.name}")


app = typed(main)
