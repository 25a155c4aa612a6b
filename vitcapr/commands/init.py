"""Make a folder for a study of your own, from which snakemake runs."""

import json
import re
import shutil
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.errors import UserError, did_you_mean
from vitcapr.experiment.paths import WORKFLOW
from vitcapr.files import write_text

SNAKEFILE = Path(__file__).with_name("study.smk")
IGNORED = ".snakemake/\nresults/\n"
SCHEMAS = "workflow/schemas"
"""With them, an editor completes the keys of config.yaml."""
EXPERIMENTS = WORKFLOW / "experiments"


def main(
    folder: Annotated[Path, typer.Argument(help="Folder of the study, new or empty.")],
    experiment: Annotated[str, typer.Option(help="Packaged experiment to copy.")] = "template",
    photographs: Annotated[
        Path | None, typer.Option(exists=True, resolve_path=True, help="Folder or zip of photographs for the template.")
    ] = None,
    captions: Annotated[
        Path | None, typer.Option(exists=True, resolve_path=True, help="Table of their captions, for the template.")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="Hub id or folder of a checkpoint, for the template.")] = None,
) -> None:
    """Make a folder from which snakemake runs: Snakefile, config.yaml, one experiment and profiles."""
    source = EXPERIMENTS / f"{experiment}.yaml"
    known = sorted(path.stem for path in EXPERIMENTS.glob("*.yaml"))
    if experiment not in known:
        remedy = did_you_mean(experiment, known, f"there are {', '.join(known)}")
        raise UserError(f"no experiment '{experiment}'", where="--experiment", remedy=remedy)
    checkpoint = Path(backbone).resolve() if backbone and Path(backbone).is_dir() else backbone
    values = {"images: photographs": photographs, "captions: captions.csv": captions, "{source: [^}]*": checkpoint}
    given = {old: json.dumps(str(value), ensure_ascii=False) for old, value in values.items() if value is not None}
    if given and experiment != "template":
        raise UserError("only the template is filled in", where="--experiment", remedy="edit the experiment by hand")
    text = source.read_text(encoding="utf-8")
    for old, value in given.items():
        text = re.sub(old, f"{old.partition(':')[0]}: {value}".replace("\\", r"\\"), text)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError("the folder of a new study must be empty", where=folder, remedy="give another name")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(SNAKEFILE, folder / "Snakefile")
    write_text(folder / ".gitignore", IGNORED)
    (folder / "experiments").mkdir()
    write_text(folder / "experiments" / source.name, text)
    shutil.copyfile(WORKFLOW / "config.yaml", folder / "config.yaml")
    for place in ("profiles", SCHEMAS):
        shutil.copytree(WORKFLOW / place, folder / place)
    (folder / "slurm").symlink_to("profiles/slurm")  # snakemake --profile slurm
    print(f"{folder}: a new study")
    print(f"  cd {folder}")
    if not given:
        print("  snakemake --cores 2                       the demo of config.yaml, on 10,000 rendered pictures")
        print(f"  edit experiments/{source.name}, then")
    print(f"  vitcapr config check --configfile experiments/{source.name}")
    print(f"  snakemake --cores 2 --configfile experiments/{source.name}")
    print(f"The pages that the comments name, such as docs/your-data.md, are in {WORKFLOW}")


app = typer_app(main)
