"""The description of the distribution: the README without relative links, which lead nowhere on a package index."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[.*\n(\*.*\n)?", re.MULTILINE)
LINK = re.compile(r"\[([^]]+)\]\((?!https?:)([^)#]+)[^)]*\)")
WHERE = "The files in brackets are in the wheel; `vitcapr init` prints their folder."


def describe(readme: str) -> str:
    """Return the README with the files of its relative links in brackets, and without pictures."""
    title, rest = readme.split("\n", 1)
    text = LINK.sub(r"\1 (`\2`)", PICTURE.sub("", rest))
    return f"{title}\n\n{WHERE}\n{text}"


class Description(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description."""
        text = describe((Path(self.root) / "README.md").read_text(encoding="utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
