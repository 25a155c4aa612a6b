"""Pages in the one style: tables for people, audits, and the list of experiments."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from vitcapr.files import write_text

COLOURS, STYLE = (Path(__file__).with_name(name) for name in ("colours.css", "page.css"))
"""The colours, which all pages share, and the rest of the style."""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{home}<main>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""


def html_page(title: str, body: str, home: str = "") -> str:
    """Return a page.

    Args:
        title: plain text, which becomes the heading too.
        body: HTML.
        home: address of the experiment's first page; empty without one.
    """
    back = f'<nav class="home" aria-label="Experiment"><a href="{escape(home)}">First page</a></nav>\n' if home else ""
    return _PAGE.format(title=escape(title), style=read_style(), home=back, body=body)


def read_style() -> str:
    return "".join(file.read_text(encoding="utf-8") for file in (COLOURS, STYLE))


def write_page(files: Sequence[Path], markdown: str, home: str = "../index.html") -> None:
    """Write a page of tables to every file: as it is, or in HTML where the suffix says so.

    A heading of the whole page is the title of the HTML, else the name of the file is.

    Args:
        home: address of the experiment's first page as seen from the files; by default, as seen from ``tables``.
    """
    for file in files:
        content = markdown
        if file.suffix == ".html":
            heading, _, rest = markdown.partition("\n") if markdown.startswith("## ") else ("", "", markdown)
            title = heading.lstrip("# ") or file.stem.replace("_", " ").capitalize()
            content = html_page(title.replace("\\<", "<"), html_tables(rest), home)
        write_text(file, content)


def html_tables(markdown: str) -> str:
    """Return tables in HTML: wide ones scroll by themselves, columns without an alignment begin at the left."""
    from markdown_it import MarkdownIt

    html = MarkdownIt("js-default").render(markdown).replace("<td>", '<td class="l">').replace("<th>", '<th class="l">')
    first, *tables = html.replace("</table>", "</table></div>").split("<table>")
    regions = (
        f'<div class="wide" role="region" tabindex="0" aria-label="Table {number}"><table>{table}'
        for number, table in enumerate(tables, 1)
    )
    return "".join([first, *regions]).replace("<h3>", "<h2>").replace("</h3>", "</h2>")
