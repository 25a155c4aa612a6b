"""What the first page of an experiment shows, and the page itself: one HTML file that needs no network."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import jinja2

from vitcapr.formats.manifest import SPLITS, Manifest
from vitcapr.formats.tables import Table
from vitcapr.report.first_page import TEMPLATE


@dataclass(frozen=True)
class Picture:
    """A small picture in the page.

    Attributes:
        content: a JPEG or PNG file.
        alt: what it shows, for people who do not see it.
    """

    content: bytes
    alt: str
    kind: str = "jpeg"

    @property
    def source(self) -> str:
        """The picture as a ``data:`` address."""
        return f"data:image/{self.kind};base64,{base64.b64encode(self.content).decode('ascii')}"


@dataclass(frozen=True)
class Words:
    """A run of words of a caption; ``change`` is ``del`` or ``ins`` where reranking removed or added them."""

    text: str
    change: str = ""


@dataclass(frozen=True)
class SystemCaption:
    """What one system wrote: its name, and the caption in runs of words."""

    system: str
    words: Sequence[Words]


@dataclass(frozen=True)
class Captioned:
    """A picture, what each system wrote, and a reference."""

    picture: Picture
    captions: Sequence[SystemCaption]
    reference: str


@dataclass(frozen=True)
class Match:
    """A match of a query: a picture or a text.

    Attributes:
        rank: its place among all matches.
        right: whether it is a positive.
    """

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


@dataclass(frozen=True)
class FirstPage:
    """The content of the page. What is empty is left out.

    Attributes:
        facts: what the experiment is made of: a name and a text each.
        scores: the tables of all scores.
        beside: the tables of a paper's scores beside those of this build.
        captioned, captioned_note: pictures with captions, and how they were chosen.
        retrieved, retrieved_note: queries of one model, and which model it is.
        curves: training curves.
        cost, cost_note: time, memory and energy of the jobs.
        again: the lines to type to run the experiment again.
        code: the version, and the commit where it is known.
        links: files beside the page, and what they are.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    scores: Sequence[Table]
    again: Sequence[str]
    code: str
    has_oracle: bool = False
    beside: Sequence[Table] = ()
    paper: str = ""
    captioned: Sequence[Captioned] = ()
    captioned_note: str = ""
    retrieved: Sequence[Retrieved] = ()
    retrieved_note: str = ""
    curves: Sequence[Picture] = ()
    cost: Table | None = None
    cost_note: str = ""
    links: Sequence[tuple[str, str]] = ()


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
