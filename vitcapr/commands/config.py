"""Look at a configuration without running anything."""

import sys
from pathlib import Path
from typing import Annotated

import typer
import yaml

from vitcapr.commands.options import Configfiles
from vitcapr.config.schema import schema_text
from vitcapr.workflow.experiment import load_experiment

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True)


@app.command()
def check(configfile: Configfiles = None) -> None:
    """Check a configuration: its keys, its values, and that the files it names exist."""
    experiment = load_experiment(*(configfile or []))
    runs = len(experiment.captioning.files("captions", "captions.json"))
    print(
        f"{experiment.chosen.name}: {experiment.config.data.dataset}, {len(experiment.chosen.backbones)} backbone(s), "
        f"{len(experiment.chosen.captioners)} captioner(s), {runs} set(s) of captions"
    )


@app.command()
def show(configfile: Configfiles = None) -> None:
    """Print the configuration in full, every default filled in, as YAML."""
    yaml.safe_dump(load_experiment(*(configfile or [])).config.canonical(), sys.stdout, sort_keys=False)


@app.command()
def schema(
    output: Annotated[Path | None, typer.Option(help="A file to write to instead of the terminal.")] = None,
) -> None:
    """Print the JSON schema of a configuration, for editors."""
    text = schema_text()
    if output is None:
        print(text, end="")
    else:
        output.write_text(text, encoding="utf-8")
