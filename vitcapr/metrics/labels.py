"""Label, group, unit and decimals of each score in tables.

They are in ``labels.yaml``, and those of an extension in the file of this name in its folder.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from vitcapr.errors import UserError
from vitcapr.formats.tables import Cell, number
from vitcapr.loader import files_of_extensions


class ScoreGroup(NamedTuple):
    """Scores that stand in one table of the summary."""

    name: str
    title: str
    prefix: str = ""
    """Prefix of the labels of its scores in tables with other groups."""


class ScoreColumn(NamedTuple):
    """A column of scores.

    Attributes:
        name: of the score in metrics.json.
        label: its name in a table, with the prefix of its group.
        group: None for a score that the summary's tables leave out.
        scale: what the score is multiplied by to be printed.
        help: what the score is, where the label does not say it.
        better: high, low, or empty where neither is better.
        places: decimals of the score; a difference of two scores has one more, unless it is a count.
        main: whether systems are tested in this score. The first page says which differences are shown, corrected for
            the number of these tests.
    """

    name: str
    label: str
    group: ScoreGroup | None
    scale: int = 100
    places: int = 1
    help: str = ""
    better: str = "high"
    main: bool = False

    @property
    def short(self) -> str:
        """The label in the group's own table."""
        return self.label.removeprefix(self.group.prefix) if self.group else self.label

    @property
    def named(self) -> str:
        """The label, and for a number that is not times 100 its unit, where scores of several units share a column."""
        return self.label if self.scale == 100 else f"{self.label} ({'mean' if self.places else 'count'})"

    def cell(self, score: Mapping[Any, Any]) -> Cell:
        """Return the score (``value, low, high``) and its interval."""
        return number(score["value"], score["low"], score["high"], scale=self.scale, places=self.places)

    def best(self, values: Iterable[float | None]) -> str:
        """Return the best value as :meth:`cell` prints it.

        Empty unless several values differ in print and one of them is better.
        """
        known = [value for value in values if value is not None and not math.isnan(value)]
        texts = {number(value, scale=self.scale, places=self.places).text for value in known}
        if len(texts) < 2 or not self.better:
            return ""
        return number((max if self.better == "high" else min)(known), scale=self.scale, places=self.places).text

    def exact(self, value: float | None) -> Cell:
        """Return the score with the decimals of a difference."""
        return number(value, scale=self.scale, places=self._finer)

    def difference(self, value: float, low: float | None = None, high: float | None = None) -> Cell:
        """Return a difference of two scores, signed, and its interval."""
        return number(value, low, high, scale=self.scale, places=self._finer, signed=True)

    @property
    def _finer(self) -> int:
        return self.places + 1 if self.places else 0


def _read() -> tuple[dict[str, ScoreGroup], dict[str, ScoreColumn]]:
    groups, columns = dict[str, ScoreGroup](), dict[str, ScoreColumn]()
    for file in (Path(__file__).with_suffix(".yaml"), *files_of_extensions("labels.yaml")):
        try:
            content = yaml.safe_load(file.read_text(encoding="utf-8"))
            groups |= {name: ScoreGroup(name, **values) for name, values in content.get("groups", {}).items()}
            columns |= {
                name: ScoreColumn(name=name, **{**values, "group": groups.get(values.get("group"))})
                for name, values in content.get("scores", {}).items()
            }
        except (AttributeError, TypeError, ValueError, yaml.YAMLError) as error:
            raise UserError(f"not labels of scores: {error}", where=file, remedy="correct the file") from error
    return groups, columns


GROUPS, COLUMNS = _read()
"""Column of each score, in the order of tables and of their columns."""


def summarise(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """``BLEU-4 78.3, CIDEr 412.6``: the scores that have an interval, for a log."""
    labelled = {COLUMNS[name]: score for name, score in scores.items() if name in COLUMNS and score["low"] is not None}
    return ", ".join(f"{column.label} {column.cell(score).text}" for column, score in labelled.items())


def in_groups(*groups: str) -> list[ScoreColumn]:
    """Return the scores of these groups, in the order of all."""
    return [column for column in COLUMNS.values() if column.group is not None and column.group.name in groups]
