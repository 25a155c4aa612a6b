"""The images and captions on which pages are drawn."""

from tests.report.conftest import dataset, picture

__all__ = ["dataset", "picture"]
