"""The default run, for tests of the jobs of extensions."""

from tests.experiment.conftest import fresh

__all__ = ["fresh"]
