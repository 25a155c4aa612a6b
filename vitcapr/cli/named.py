"""Options of the form NAME=FILE that may be given several times."""

from collections.abc import Sequence
from pathlib import Path

from vitcapr.errors import UserError


def parse_named(values: Sequence[str], option: str) -> dict[str, Path]:
    """The file of each name, in the order given; a name ends at the first ``=``.

    Raises:
        UserError: a value has no name or no file, or a name is given twice.
    """
    files: dict[str, Path] = {}
    for value in values:
        name, separator, path = value.partition("=")
        if not (name and separator and path):
            raise UserError(f"{option} '{value}' is not of the form NAME=FILE")
        if name in files:
            raise UserError(f"{option} has the name '{name}' twice", remedy="give each file a name of its own")
        files[name] = Path(path)
    return files
