"""What the first page of an experiment shows, and the page itself: one HTML file that needs no network."""

import base64
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import jinja2

import vitcapr
from vitcapr.formats.manifest import SPLITS, Manifest
from vitcapr.formats.tables import Table

TEMPLATE = Path(__file__).with_name("template.html")
Content = TypeVar("Content")


@dataclass(frozen=True)
class Picture:
    """A small picture in the page."""

    content: bytes
    alt: str
    kind: str = "jpeg"

    @property
    def source(self) -> str:
        """The picture as a ``data:`` address."""
        return f"data:image/{self.kind};base64,{base64.b64encode(self.content).decode('ascii')}"


class Words(NamedTuple):
    """A run of words of a caption; ``change`` is ``del`` or ``ins`` where reranking removed or added them."""

    text: str
    change: str = ""


@dataclass(frozen=True)
class Captioned:
    """An image, the runs of words of the caption of each system, and a reference."""

    picture: Picture
    captions: Mapping[str, Sequence[Words]]
    reference: str


@dataclass(frozen=True)
class Match:
    """A match of a query: a picture or a text."""

    shown: Picture | str
    cosine: float
    rank: int
    right: bool


@dataclass(frozen=True)
class Query:
    """A query, its first matches, and the nearest positive if that is not among them."""

    shown: Picture | str
    matches: Sequence[Match]


@dataclass(frozen=True)
class Retrieved:
    """The best and the worst queries of one direction."""

    title: str
    best: Sequence[Query]
    worst: Sequence[Query]


class Noted(NamedTuple, Generic[Content]):
    """The content of a section, and the note on it."""

    content: Content
    note: str


@dataclass(frozen=True)
class FirstPage:
    """The content of the page. What is empty is left out.

    Attributes:
        facts: what the experiment is made of: a name and a text each.
        scores: the tables of all scores.
        beside: the tables of a paper's scores beside those of this build, and the paper.
        captioned: images with captions, and how they were chosen.
        retrieved: queries of one model, and which model it is.
        curves: training curves.
        cost: time, memory and energy of the jobs.
        again: the command that runs the experiment again, empty where it is not known.
        folder: of the page, as a reader types it.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    scores: Sequence[Table]
    again: str
    folder: str
    has_oracle: bool = False
    has_alignments: bool = False
    beside: Noted[list[Table]] | None = None
    captioned: Noted[list[Captioned]] | None = None
    retrieved: Noted[list[Retrieved]] | None = None
    curves: Sequence[Picture] = ()
    cost: Noted[Table] | None = None

    @property
    def code(self) -> str:
        """The version that wrote the page, and the commit where git tracks it."""
        tracked = _git("ls-files", "--error-unmatch", "__init__.py")
        commit = tracked and _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
        return f"vitcapr {vitcapr.__version__}" + (f", commit {commit}" if commit else "")

    @property
    def links(self) -> list[tuple[str, str]]:
        """Files beside the page, and what they are."""
        explorer = f"every image with captions, attention and neighbours; written by vitcapr explore {self.folder}"
        report = f"every result with its provenance; written by snakemake --report {self.folder}/report.html"
        return [
            ("summary.csv", "all scores with their intervals and protocols"),
            ("tables/scores.md", "the same as tables"),
            *([("alignments/", "tables of the alignments")] if self.has_alignments else []),
            ("figures/", "the figures at the size of print"),
            ("explorer/index.html", explorer),
            ("report.html", report),
        ]


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


def to_html(page: FirstPage) -> str:
    """The page, UTF-8 text. Every text from outside is escaped."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(page=page)
