"""Where the template of the page is, for the rule that must run again when it changes."""

from pathlib import Path

TEMPLATE = Path(__file__).with_name("template.html")
