"""Options of the form NAME=FILE that may be given several times."""

from collections.abc import Sequence
from pathlib import Path

from vitcapr.errors import UserError


def parse_named(values: Sequence[str], option: str) -> dict[str, Path]:
    """The file of each name, in the order given; a name ends at the first ``=``.

    Raises:
        UserError: a value has no name or no file, or a name is given twice.
    """
    files = parse_lists(values, option)
    for name, paths in files.items():
        if len(paths) > 1:
            raise UserError(f"{option} has the name '{name}' twice", remedy="give each file a name of its own")
    return {name: paths[0] for name, paths in files.items()}


def parse_lists(values: Sequence[str], option: str) -> dict[str, list[Path]]:
    """As :func:`parse_named`, but a name may have several files.

    Raises:
        UserError: a value has no name or no file.
    """
    files: dict[str, list[Path]] = {}
    for value in values:
        name, separator, path = value.partition("=")
        if not (name and separator and path):
            raise UserError(f"{option} '{value}' is not of the form NAME=FILE")
        files.setdefault(name, []).append(Path(path))
    return files
