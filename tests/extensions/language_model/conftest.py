"""The small experiment of the commands."""

from tests.commands.conftest import _copy, _experiment, copied_project, project

__all__ = ["_copy", "_experiment", "copied_project", "project"]
