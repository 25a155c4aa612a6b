"""The small experiment of the commands, and the default run."""

from tests.commands.conftest import _copy, _experiment, copied_project, project
from tests.experiment.conftest import fresh

__all__ = ["_copy", "_experiment", "copied_project", "fresh", "project"]
