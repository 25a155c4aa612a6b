"""``results/index.html``: the experiments of a folder with their scores, state, cost and pages."""

from html import escape
from pathlib import Path

from filelock import FileLock

from vitcapr.extensions.first_page.run_history import best_scores, read_history
from vitcapr.files import write_text
from vitcapr.formats.page import html_page
from vitcapr.metrics.labels import COLUMNS
from vitcapr.pipeline.run_records import RUNS
from vitcapr.progress import format_seconds

PICTURE = "head.jpg"
"""The picture at the head of an experiment's first page."""
_PAGES = (
    *("tables/*.html", "comparisons/**/*.html", "alignments/*/tables.html", "figures/atlas/atlas.html"),
    *("foils/tables.html", "judge/tables.html", "audits/*/index.html", "explorer/index.html", "report.html"),
)


def write_experiments(results: Path, split: str) -> Path:
    """Write the list of all experiments in a folder. Experiments that end together wait for one another."""
    page = results / "index.html"
    with FileLock(page.with_name(f".{page.name}.lock"), timeout=60):
        folders = sorted({file.parent for pattern in (RUNS, "index.html") for file in results.glob(f"*/{pattern}")})
        cards = "\n".join(_card(folder, split) for folder in folders)
        words = f"<p>The highest score of each kind on the {escape(split)} split, with its 95 % interval.</p>"
        write_text(page, html_page("Experiments", f'{words}\n<ul class="cards">\n{cards}\n</ul>'))
    return page


def _card(folder: Path, split: str) -> str:
    name, runs = escape(folder.name), read_history(folder)
    finished = (folder / "index.html").is_file()
    lines = [f'<h2><a href="{name}/index.html">{name}</a></h2>' if finished else f"<h2>{name}</h2>"]
    if (folder / PICTURE).is_file():
        lines.insert(0, f'<img src="{name}/{PICTURE}" alt="">')
    for metric, one in best_scores(runs[-1], split).items() if runs else ():
        cell = COLUMNS[metric].cell(one)
        system = escape(one["system"])
        lines.append(f"<p><b>{COLUMNS[metric].label} {cell.text}</b> <small>{cell.interval}</small> {system}</p>")
    jobs = sum(1 for _ in (folder / RUNS).rglob("[!.]*.json"))
    state = f"finished, runs: {len(runs)}" if finished else f"not finished, jobs done: {jobs}"
    if runs:
        seconds = sum(run.cost["seconds"] for run in runs)
        state += f", the last {runs[-1].time[:16].replace('T', ' ')} UTC; jobs: {format_seconds(seconds)}"
    links = [
        f'<a href="{escape(str(file.relative_to(folder.parent)))}">{escape(_name(file.relative_to(folder)))}</a>'
        for pattern in _PAGES
        for file in sorted(folder.glob(pattern))
    ]
    lines += [f"<p><small>{state}</small></p>", f'<p class="links">{" ".join(links)}</p>']
    return "<li>" + "\n".join(lines) + "</li>"


def _name(page: Path) -> str:
    """``scores``, ``audits whole``, ``comparisons attention reranked test``: of a file or of its folders."""
    folders = page.parts[:-1]
    return page.stem.replace("_", " ") if folders in ((), ("tables",)) else " ".join(folders)
