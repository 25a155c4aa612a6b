"""What a paper prints of its recipe, beside what its experiment file resolves to."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

from vitcapr.errors import UserError
from vitcapr.formats.tables import Table, row

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
    """Raises:
    UserError: the experiment follows no paper.
    """
    path = _FOLDER / f"{experiment}.yaml"
    if not path.is_file():
        known = ", ".join(recipe_names())
        raise UserError(f"the experiment '{experiment}' follows no paper", remedy=f"name one of {known}")
    return PaperRecipe.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def value_at(values: Any, key: str) -> Any:
    """The value at a dotted key; names may hold dots, and ``*`` gives the values of all entries of a list.

    >>> value_at({"rate_0.1": {"phases": [{"epochs": 1}, {"epochs": 2}]}}, "rate_0.1.phases.*.epochs")
    [1, 2]

    Raises:
        KeyError: there is no such key.
    """
    if not key:
        return values
    if isinstance(values, list):
        entry, _, rest = key.partition(".")
        return [value_at(one, rest) for one in values] if entry == "*" else value_at(values[int(entry)], rest)
    if isinstance(values, Mapping):
        for name in values:
            if key == name or key.startswith(f"{name}."):
                return value_at(values[name], key[len(name) + 1 :])
    raise KeyError(key)


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
