"""The small experiment of the commands."""

from tests.commands.conftest import _experiment, project

__all__ = ["_experiment", "project"]
