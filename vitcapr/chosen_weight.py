"""A weight that the validation split chose, and what it was chosen with: ``weight.json``."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import ClassVar, Self

from vitcapr.errors import UserError
from vitcapr.files import read_json, write_json


@dataclass(frozen=True)
class ChosenWeight:
    """Its fields are those of the file; a stage adds its own."""

    FORMAT: ClassVar[str]
    STAGE: ClassVar[str]
    """The stage that makes it."""

    weight: float
    curve: list[dict[str, float]]
    """A row for everything that was tried: ``weight``, what else was varied, and what came of it."""

    def write(self, path: Path) -> None:
        write_json(path, {"format": self.FORMAT, **asdict(self)})

    @classmethod
    def read(cls, path: Path) -> Self:
        """Raises:
        UserError: the file is missing or is not such a file.
        """
        content = read_json(path)
        names = {"format", *(field.name for field in fields(cls))}
        if not isinstance(content, dict) or content.get("format") != cls.FORMAT or content.keys() != names:
            raise UserError(f"not a weight of format {cls.FORMAT}", where=path, remedy=f"run {cls.STAGE} again")
        return cls(**{name: value for name, value in content.items() if name != "format"})
