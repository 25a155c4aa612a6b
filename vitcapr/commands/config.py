"""Look at a configuration without running anything."""

import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from vitcapr.commands.estimate import backbone_lines, splits_and_languages, trial_lines
from vitcapr.commands.main import Configfiles
from vitcapr.config.base import parse
from vitcapr.config.experiment import ExperimentConfig, missing_languages
from vitcapr.config.grid import expand_grid
from vitcapr.config.reference import parameters_text, schema_text
from vitcapr.errors import UserError, as_user_error
from vitcapr.experiment.checks import empty_splits
from vitcapr.experiment.downloads import missing_lines, models_of, obtainable_table
from vitcapr.experiment.experiment import Experiment, load_experiment, names_of, read_merged
from vitcapr.formats.tables import to_markdown
from vitcapr.studies.papers.recipe import read_recipe, recipe_table

Output = Annotated[Path | None, typer.Option(help="A file to write to instead of the terminal.")]
SPLITS = ("train", "validation", "test", "none")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)


@app.command()
def check(
    configfile: Configfiles = None,
    trial: Annotated[
        bool, typer.Option("--trial", help="Run the long stages on 64 images to estimate the time of the whole run.")
    ] = False,
) -> None:
    """Check a configuration: its keys, its values, its files and models; count images and bytes of features."""
    files = configfile or []
    where = names_of(files)
    for line in missing_lines(Experiment(parse(ExperimentConfig, expand_grid(read_merged(*files), where), where))):
        print(line)
    experiment = load_experiment(*files)
    sizes, languages = splits_and_languages(experiment)
    errors = [UserError(what, where=where) for what in missing_languages(experiment.config, languages)]
    if errors := [*errors, *(empty_splits(experiment, sizes) if sizes else ())]:
        raise as_user_error(errors)
    listed = ", ".join(f"{sizes[split]} {split}" for split in SPLITS if sizes[split])
    dataset = experiment.config.data.dataset
    print(f"data: {dataset}, {f'{sizes.total()} images: {listed}' if sizes else 'sampled when it is read'}")
    for line in backbone_lines(experiment, sizes.total()):
        print(line)
    print(experiment.contents)
    if trial:
        for line in trial_lines(experiment, sizes):
            print(line, flush=True)


@app.command()
def show(configfile: Configfiles = None) -> None:
    """Print the configuration in full, every default filled in, as YAML."""
    yaml.safe_dump(load_experiment(*(configfile or [])).config.canonical(), sys.stdout, sort_keys=False)


@app.command()
def schema(output: Output = None) -> None:
    """Print the JSON schema of a configuration, for editors."""
    _write(schema_text(), output)


@app.command()
def parameters(output: Output = None) -> None:
    """Print every key with its type, default and meaning, as Markdown (config/README.md)."""
    _write(parameters_text(), output)


@app.command()
def recipe(
    name: Annotated[str, typer.Argument(help="An experiment that follows a paper: vitcap-r-coco, ...")],
    into: Annotated[Path | None, typer.Option(help="Page in which to replace the table of this experiment.")] = None,
) -> None:
    """Compare the recipe of a paper with its experiment file, and print the reasons for differences."""
    text = recipe_text(name)
    if into is None:
        print(text, end="")
        return
    page = into.read_text(encoding="utf-8")
    first, last = (f"<!-- recipe {name} -->\n", f"<!-- end of recipe {name} -->")
    if first not in page or last not in page:
        what = f"the page has no place for the recipe {name}"
        raise UserError(what, where=into, remedy=f"add the lines {first}{last}")
    into.write_text(page.split(first)[0] + first + text + last + page.split(last)[1], encoding="utf-8")


def recipe_text(name: str) -> str:
    """The Markdown table of an experiment that follows a paper."""
    values = read_merged(Path("experiments") / f"{name}.yaml")
    resolved = parse(ExperimentConfig, expand_grid(values, name), name).canonical()
    return to_markdown(recipe_table(read_recipe(name), resolved))


@app.command()
def files() -> None:
    """Print which files and models the experiments need, where they come from, their licence and their size."""
    print(files_text(), end="")


def files_text() -> str:
    """The Markdown table of all experiments' files and models."""
    needed = {}
    for path in sorted(Path("experiments").glob("*.yaml")):
        experiment = Experiment(parse(ExperimentConfig, expand_grid(read_merged(path), path), path))
        needed[path.stem] = [*map(str, experiment.user_files.values()), *models_of(experiment)]
    return to_markdown(obtainable_table(needed))


def _write(text: str, output: Path | None) -> None:
    if output is None:
        print(text, end="")
    else:
        output.write_text(text, encoding="utf-8")
