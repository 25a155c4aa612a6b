"""Measured figures: one committed file, from which the pages have them.

``results.json`` holds tables. Each has the values, and the command, commit, date and machine of the measurement. A page
shows a table, or the first value of a row, between two comments:

    <!-- results: decoding -->        <!-- results: demo / minutes -->
    <!-- end of results -->           <!-- end of results -->

``make bench`` and ``make bench-scale`` write the file; ``make pages`` writes the pages:

    python -m benchmarks.results
"""

import json
import os
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("results.json")
PAGES = (
    "README.md",
    "docs/performance.md",
    "docs/scale.md",
    "docs/language-model.md",
    "docs/moving-stores.md",
    "docs/pytorch.md",
    "docs/ideas.md",
    "docs/vitcap-r.md",
    "docs/projection-heads.md",
)
SLOWER = 1.1
Table = dict[str, Any]
"""``columns``: the headers; ``rows``: the values of each row by its name; and whence, see :func:`write`."""

_PLACE = re.compile(r"<!-- results: ([^/\n]+?)(?: / ([^\n]+?))? -->(.*?)<!-- end of results -->", re.DOTALL)


def read() -> dict[str, Table]:
    return json.loads(FILE.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def write(tables: dict[str, Table]) -> None:
    """Put tables that were measured now, on this machine and commit, into the file; the others stay."""
    where = {"commit": commit(), "date": f"{datetime.now(UTC):%Y-%m-%d}", "machine": machine()}
    every = read() | {name: table | where for name, table in tables.items()}
    lines = [f" {json.dumps(name)}: {_lines(table)}" for name, table in every.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _lines(table: Table) -> str:
    """A table as JSON, a row on a line of its own."""
    rows = ",\n".join(
        f"   {json.dumps(key, ensure_ascii=False)}: {json.dumps(row, ensure_ascii=False)}"
        for key, row in table["rows"].items()
    )
    rest = [
        f"  {json.dumps(key, ensure_ascii=False)}: {json.dumps(value, ensure_ascii=False)}"
        for key, value in table.items()
        if key != "rows"
    ]
    return "{\n" + ",\n".join([*rest, f'  "rows": {{\n{rows}\n  }}']) + "\n }"


def commit() -> str:
    git = ["git", "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(git, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def machine() -> str:
    """The processor, and how many programs ran on its cores in the last minute."""
    information = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*: (.*)", information)
    amx = " with AMX" if "amx_tile" in information else ""
    cores = len(os.sched_getaffinity(0))
    return f"{model[1] if model else 'unknown processor'}{amx}, {cores} cores, load {os.getloadavg()[0]:.0f}"


def slower(rows: dict[str, list[Any]], before: dict[str, list[Any]]) -> list[str]:
    """The rows whose ratio is worse than before by more than a tenth, a line each.

    Args:
        rows: a ratio and its aim. The least is best where the aim begins with "at most".
    """
    lines = []
    for name, (value, aim) in rows.items():
        old = before.get(name, [value])[0]
        times = value / old if str(aim).startswith("at most") else old / value
        if times > SLOWER:
            lines.append(f"slower: {name}: {value}, and {old} in {FILE.name}")
    return lines


def markdown(table: Table) -> str:
    """The table and its source."""
    lines = [table["columns"], ["---"] + ["---:"] * (len(table["columns"]) - 1)]
    lines += [[name, *map(_text, row)] for name, row in table["rows"].items()]
    note = f" {table['note']}" if "note" in table else ""
    source = f"*`{table['command']}`, commit {table['commit']}, {table['date']}: {table['machine']}.{note}*"
    return "\n".join([*(f"| {' | '.join(cells)} |" for cells in lines), "", source])


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:,}"


def fill(page: str, tables: dict[str, Table]) -> str:
    """The page with the figures of the file.

    Raises:
        KeyError, ValueError: the file lacks a table, a row or a column.
    """

    def place(match: re.Match[str]) -> str:
        name, row, old = match.groups()
        new = f"\n{markdown(tables[name])}\n" if row is None else _text(_cell(tables[name], row))
        return match[0].replace(f"-->{old}<!--", f"-->{new}<!--", 1)

    return _PLACE.sub(place, page)


def _cell(table: Table, place: str) -> Any:
    """Return the first number of a row, or that of a column: ``ROW`` or ``ROW / COLUMN``."""
    if place in table["rows"]:
        return table["rows"][place][0]
    row, _, column = place.rpartition(" / ")
    return table["rows"][row][table["columns"].index(column) - 1]


def main() -> None:
    tables = read()
    for name in PAGES:
        path = ROOT / name
        path.write_text(fill(path.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    main()
