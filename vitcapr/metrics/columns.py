"""The columns of score tables: name, unit and table of each score."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from vitcapr.formats.tables import Cell, number


class ScoreGroup(NamedTuple):
    """Scores that stand in one table of the summary."""

    title: str
    prefix: str = ""
    """What the names of its scores begin with where they stand among others."""


REFERENCES = ScoreGroup("Captions against references, times 100")
IMAGE_TO_TEXT = ScoreGroup("Image to text, percent and ranks", "I→T ")
TEXT_TO_IMAGE = ScoreGroup("Text to image, percent and ranks", "T→I ")
GROUNDING = ScoreGroup("Attention and objects, in percent")
CLAIMS = ScoreGroup("Claims of the captions that are right, in percent")
LANGUAGE = ScoreGroup("Language of the captions, in percent, words and counts")
GROUPS = (REFERENCES, IMAGE_TO_TEXT, TEXT_TO_IMAGE, GROUNDING, CLAIMS, LANGUAGE)
"""In the order of their tables."""


class ScoreColumn(NamedTuple):
    """Attributes:
    name: of the score in metrics.json.
    label: its name in a table, with the prefix of its group.
    group: None for a score that the summary's tables leave out.
    scale: what the score is multiplied by to be printed.
    places: decimals of the score; a difference of two scores has one more, unless it is a count.
    """

    name: str
    label: str
    group: ScoreGroup | None
    scale: int = 100
    places: int = 1

    @property
    def short(self) -> str:
        """The label in the group's own table."""
        return self.label.removeprefix(self.group.prefix) if self.group else self.label

    def cell(self, score: Mapping[Any, Any]) -> Cell:
        """The score (``value, low, high``) and its interval."""
        return number(score["value"], score["low"], score["high"], scale=self.scale, places=self.places)

    def exact(self, value: float | None) -> Cell:
        """The score with the decimals of a difference."""
        return number(value, scale=self.scale, places=self._finer)

    def difference(self, value: float, low: float | None = None, high: float | None = None) -> Cell:
        """A difference of two scores, signed, and its interval."""
        return number(value, low, high, scale=self.scale, places=self._finer, signed=True)

    @property
    def _finer(self) -> int:
        return self.places + 1 if self.places else 0


def count(name: str, label: str, group: ScoreGroup) -> ScoreColumn:
    return ScoreColumn(name, label, group, scale=1, places=0)
