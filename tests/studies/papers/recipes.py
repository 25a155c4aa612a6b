"""What a paper prints of its recipe, beside what its experiment file resolves to: what is tested, and what docs/ shows.

Print the table of an experiment again after a change:  python -m tests.studies.papers.recipes vitcap-r-coco
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from vitcapr.experiment.experiment import read_config
from vitcapr.formats.tables import Table, row, to_markdown
from vitcapr.studies.papers.tables import value_at

_FOLDER = Path(__file__).with_suffix("")


class PrintedSetting(BaseModel):
    """A setting that the paper prints.

    Attributes:
        key: of the resolved configuration; ``*`` stands for every entry of a list.
        printed: the value as the configuration spells it, or ``not printed``.
        where: the section that prints it.
        here: the value of the experiment file, given only where it differs.
        why: why it differs, or how an ambiguous sentence was read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str
    printed: Any
    where: str = ""
    here: Any = None
    why: str = ""


class PaperRecipe(BaseModel):
    """The settings of one experiment file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str
    settings: tuple[PrintedSetting, ...]


def recipe_names() -> list[str]:
    """The experiments that follow a paper."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


def read_recipe(experiment: str) -> PaperRecipe:
    return PaperRecipe.model_validate(yaml.safe_load((_FOLDER / f"{experiment}.yaml").read_text(encoding="utf-8")))


def recipe_table(recipe: PaperRecipe, values: Mapping[str, Any]) -> Table:
    """Printed, here, and why it differs, of equal rows one; what is here as printed stands above the table.

    Args:
        values: the resolved configuration of the experiment.
    """
    same = [f"`{one.key}` {_shown(one.printed)} ({one.where})" for one in recipe.settings if not one.why]
    keys: dict[tuple[str, ...], list[str]] = {}
    for one in recipe.settings:
        if one.why:
            cells = (_shown(one.printed), one.where, _shown(value_at(values, one.key)), one.why)
            keys.setdefault(cells, []).append(f"`{one.key}`")
    return Table(
        recipe.title,
        ("setting", "printed", "section", "here", "why it differs"),
        tuple(row(", ".join(names), *cells) for cells, names in keys.items()),
        align="lllll",
        caption=f"As printed: {'; '.join(same)}.",
        name="recipe",
    )


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value)) or "none"
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def recipe_text(name: str) -> str:
    """The table in Markdown."""
    return to_markdown(recipe_table(read_recipe(name), read_config(Path("experiments") / f"{name}.yaml").canonical()))


if __name__ == "__main__":
    print(recipe_text(sys.argv[1]), end="")
