"""The first page of an experiment: one HTML file that needs no network."""

import io
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import jinja2
from markupsafe import Markup
from PIL import Image

import vitcapr
from vitcapr.data.images import data_url, thumbnail
from vitcapr.formats.manifest import SPLITS, Manifest
from vitcapr.report.attended import SCRIPT

TEMPLATE = Path(__file__).with_suffix(".html")
_SIDE = 260
Content = TypeVar("Content")


class Noted(NamedTuple, Generic[Content]):
    """The content of a section, and the note on it."""

    content: Content
    note: str


class Picture(NamedTuple):
    """A small picture: its file, JPEG or PNG, its description, and the id of the image that it shows, if any."""

    content: bytes
    alt: str
    kind: str = "jpeg"
    image: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height, so that a page has room for it from the start."""
        return Image.open(io.BytesIO(self.content)).size

    @property
    def address(self) -> str:
        return data_url(self.content, self.kind)


def small(image: Image.Image, alt: str, image_id: str) -> Picture:
    return Picture(thumbnail(image, _SIDE), alt, image=image_id)


def code_version() -> str:
    """The version that wrote the page, and the commit where git tracks it."""
    tracked = _git("ls-files", "--error-unmatch", "__init__.py")
    commit = tracked and _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    return f"vitcapr {vitcapr.__version__}" + (f", commit {commit}" if commit else "")


def _git(*arguments: str) -> str:
    """What git says in the folder of this package; empty where it fails."""
    command = ["git", "-C", str(Path(vitcapr.__file__).parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def data_line(data: Manifest) -> str:
    """The name of a data set, and how many pictures and captions it has."""
    counts = data.images["split"].value_counts()
    splits = ", ".join(f"{counts[split]:,} {split}" for split in SPLITS if split in counts)
    return f"{data.dataset}: {len(data.images):,} pictures ({splits}), {len(data.captions):,} captions"


def to_html(*, title: str, facts: Sequence[tuple[str, str]], folder: str, again: str, **sections: Any) -> str:
    """The page, UTF-8 text. Every text from outside is escaped.

    Args:
        facts: the parts of the experiment: a name and a text each.
        folder: of the page, as a reader types it.
        again: the command that runs the experiment again, empty where it is not known.
        sections: what ``content.html`` has a section for; an empty one is left out.
    """
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=jinja2.Undefined
    )
    script = Markup(SCRIPT.read_text(encoding="utf-8"))
    page = {"title": title, "facts": facts, "folder": folder, "again": again, "code": code_version(), "script": script}
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(page | sections)
