"""The first page of an experiment: one HTML file that needs no network; what the jobs behind it cost."""

import io
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import jinja2
import pandas as pd
from markupsafe import Markup
from PIL import Image

import vitcapr
from vitcapr.data.images import data_url, thumbnail
from vitcapr.data.remarks import FILE, count_reasons
from vitcapr.experiment.lineage import Records
from vitcapr.formats.manifest import SPLITS, Manifest
from vitcapr.formats.page import read_style
from vitcapr.formats.tables import Table, row
from vitcapr.pipeline.run_records import RUNS, Run
from vitcapr.progress import format_seconds
from vitcapr.report.attended import SCRIPT

TEMPLATE = Path(__file__).with_suffix(".html")
_SIDE = 260
_SHOWN = 8
"""Stages with a row of their own; the rest are added up."""
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
    """Return the version that wrote the page, and the commit where git tracks it."""
    tracked = _git("ls-files", "--error-unmatch", "__init__.py")
    commit = tracked and _git("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    return f"vitcapr {vitcapr.__version__}" + (f", commit {commit}" if commit else "")


def _git(*arguments: str) -> str:
    """Return the output of git in the folder of this package; empty if git fails."""
    command = ["git", "-C", str(Path(vitcapr.__file__).parent), *arguments]
    try:
        return subprocess.run(command, capture_output=True, check=True, text=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def data_line(data: Manifest, language: str) -> str:
    """Return the name of a data set, and how many pictures and captions it has, and how many of those are used.

    Args:
        language: of the captions that the experiment uses.
    """
    counts = data.images["split"].value_counts()
    splits = ", ".join(f"{counts[split]:,} {split}" for split in SPLITS if split in counts)
    used, others = int((data.captions["language"] == language).sum()), len(data.captions)
    captions = f"{used:,} captions" + (f" in use (of {others:,}: those in {language})" if used < others else "")
    return f"{data.dataset}: {len(data.images):,} pictures ({splits}), {captions}"


def left_out_line(data: Path) -> str:
    """Describe what the data set of this folder leaves out; empty if it leaves out nothing."""
    reasons = pd.read_csv(data / FILE, keep_default_na=False)["reason"].tolist()
    return f"{len(reasons):,} ({count_reasons(reasons)}): data/{FILE}" if reasons else ""


def to_html(*, title: str, facts: Sequence[tuple[str, str]], folder: str, again: str, **sections: Any) -> str:
    """Return the page, UTF-8 text. Every text from outside is escaped.

    Args:
        facts: the parts of the experiment: a name and a text each.
        folder: of the page, as a reader types it.
        again: the command that runs the experiment again, empty where it is not known.
        sections: what ``index_page.html`` has a section for; an empty one is left out.
    """
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True, undefined=jinja2.Undefined
    )
    script = Markup(SCRIPT.read_text(encoding="utf-8"))
    style, code = Markup(read_style()), code_version()
    page = {"title": title, "facts": facts, "folder": folder, "again": again, "code": code, "script": script}
    sections |= {"style": style}
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(page | sections)


def jobs_behind(page: Path, files: Iterable[Path]) -> list[Run]:
    """Return the jobs behind ``files`` that are recorded beside ``page``."""
    folder = page.parent
    if not (folder / RUNS).is_dir():
        return []
    return Records(folder).behind(path.relative_to(folder).as_posix() for path in files if path.is_relative_to(folder))


def cost_table(runs: Sequence[Run]) -> Table:
    """Time, CPU time and peak memory by stage, the longest first, and of all."""
    stages: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        stages[run.stage].append(run)
    ordered = sorted(stages.items(), key=lambda item: (-sum(run.made["seconds"] for run in item[1]), item[0]))
    rest = [run for _, each in ordered[_SHOWN:] for run in each]
    groups = [
        *ordered[:_SHOWN],
        *([(f"{len(ordered) - _SHOWN} other stages", rest)] if rest else []),
        ("all", list(runs)),
    ]
    lines = []
    for name, several in groups:
        made = [run.made for run in several]
        seconds, cpu_seconds = (format_seconds(sum(each[key] for each in made)) for key in ("seconds", "cpu_seconds"))
        memory = f"{max(each['peak_memory_mb'] for each in made) / 1000:.1f} GB"
        lines.append(row(name, str(len(several)), seconds, cpu_seconds, memory))
    return Table("", ("stage", "jobs", "time", "CPU time", "memory at most"), tuple(lines))


def cost_note(runs: Sequence[Run]) -> str:
    """Explain the numbers of :func:`cost_table`."""
    hosts = sorted({run.made["platform"] for run in runs})
    days = sorted(run.made["started"][:10] for run in runs)
    parts = [
        "The jobs behind this page, without the figures. Times are added up; jobs that ran side by side took less time "
        "together.",
        f"Measured {days[0] if days[0] == days[-1] else f'{days[0]} to {days[-1]}'} on {'; '.join(hosts)}.",
    ]
    uses = [use for run in runs if (use := run.result_cache) is not None]
    restored = sum(use["restored"] is not None for use in uses)
    if restored:
        parts.append(f"{restored} of {len(runs)} jobs were restored from the result cache; their first cost counts.")
    return " ".join(parts)
