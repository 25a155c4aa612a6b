"""index.html of an experiment."""

from pathlib import Path

TEMPLATE = Path(__file__).with_name("template.html")
"""The rule of the page runs again when it changes."""
