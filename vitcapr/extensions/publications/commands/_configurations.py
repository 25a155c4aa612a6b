"""The configurations of an experiment whose results are there."""

from pathlib import Path
from typing import Any

from vitcapr.errors import UserError


def configurations_of(experiment: Path, configfile: list[Path] | None) -> list[Any]:
    """Return the configuration in the given files; without files, every known one of the experiment in a folder.

    Raises:
        UserError: none is known.
    """
    from vitcapr.commands.gc import configurations
    from vitcapr.experiment.experiment import read_config

    files = [configfile] if configfile else configurations([]).get(experiment.resolve().name)
    if not files:
        remedy = "name it with --configfile"
        raise UserError("no configuration of this experiment found", where=experiment, remedy=remedy)
    return [read_config(*some) for some in files]
