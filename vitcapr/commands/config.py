"""Check a configuration, show it in full, or print its schema."""

import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from vitcapr.commands.downloads import missing_lines, models_of, obtainable_table
from vitcapr.commands.estimate import backbone_lines, splits_and_languages, text_encoder_lines
from vitcapr.commands.forecast import forecast, run_trials
from vitcapr.commands.main import Configfiles
from vitcapr.config.contradictions import missing_languages
from vitcapr.config.reference import parameters_text, schema_text
from vitcapr.errors import UserError, as_user_error
from vitcapr.experiment.checks import empty_splits, endless_warm_ups, too_many_pairs
from vitcapr.experiment.experiment import Experiment, load_experiment, names_of, read_config
from vitcapr.formats.tables import to_markdown
from vitcapr.progress import print_lines

SPLITS = ("train", "validation", "test", "none")

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)


@app.command()
def check(
    configfile: Configfiles = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="First run the experiment on a few hundred images, for the forecast.")
    ] = False,
) -> None:
    """Check a configuration: its keys, its values, its files and models; count images, bytes, minutes and memory."""
    files = configfile or []
    where = names_of(files)
    print_lines(*missing_lines(Experiment(read_config(*files))))
    experiment = load_experiment(*files)
    sizes, languages, captions = splits_and_languages(experiment)
    errors = [UserError(what, where=where) for what in missing_languages(experiment.config, languages)]
    errors += too_many_pairs(experiment, captions) if captions else ()
    errors += () if experiment.config.data.dataset == "pairs" else empty_splits(experiment, sizes)
    if errors:
        raise as_user_error(errors)
    listed = ", ".join(f"{sizes[split]:,} {split}" for split in SPLITS if sizes[split])
    size = f"{sizes.total():,} images: {listed}" if sizes else "sampled when it is read"
    encoders = [*backbone_lines(experiment, sizes.total()), *text_encoder_lines(experiment)]
    print_lines(f"data: {experiment.config.data.dataset}, {size}", *encoders, experiment.contents)
    if measure:
        run_trials(experiment, sizes.total(), files)
    print_lines(*forecast(Path(experiment.root), sizes, files))
    print_lines(*endless_warm_ups(experiment, sizes["train"]), f"{where}: no mistakes")


@app.command()
def show(configfile: Configfiles = None) -> None:
    """Print the configuration in full, every default filled in, as YAML."""
    yaml.safe_dump(load_experiment(*(configfile or [])).config.canonical(), sys.stdout, sort_keys=False)


@app.command()
def schema() -> None:
    """Print the JSON schema of a configuration, for editors."""
    print(schema_text(), end="")


@app.command()
def parameters() -> None:
    """Print every key with its type, default and meaning, as Markdown (config/README.md)."""
    print(parameters_text(), end="")


@app.command()
def files() -> None:
    """Print which files and models the experiments need, where they come from, their licence and their size."""
    print(files_text(), end="")


def files_text() -> str:
    """The Markdown table of all experiments' files and models."""
    needed = {}
    for path in sorted(Path("experiments").glob("*.yaml")):
        experiment = Experiment(read_config(path))
        needed[path.stem] = [*map(str, experiment.user_files.values()), *models_of(experiment)]
    return to_markdown(obtainable_table(needed))
