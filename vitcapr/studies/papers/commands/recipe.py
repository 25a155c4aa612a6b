"""Compare the recipe of a paper with its experiment file."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.commands.main import typer_app
from vitcapr.experiment.experiment import read_config
from vitcapr.formats.tables import to_markdown
from vitcapr.studies.papers.recipe import read_recipe, recipe_table


def main(name: Annotated[str, typer.Argument(help="An experiment that follows a paper: vitcap-r-coco, ...")]) -> None:
    """Compare the recipe of a paper with its experiment file, and print the reasons for differences."""
    print(recipe_text(name), end="")


def recipe_text(name: str) -> str:
    """The Markdown table of an experiment that follows a paper."""
    resolved = read_config(Path("experiments") / f"{name}.yaml").canonical()
    return to_markdown(recipe_table(read_recipe(name), resolved))


app = typer_app(main)
