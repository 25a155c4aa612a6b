"""The images and captions of the figures, and the run of a stage that draws."""

from tests.report.conftest import dataset, draw, picture

__all__ = ["dataset", "draw", "picture"]
