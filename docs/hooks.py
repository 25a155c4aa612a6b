"""Hooks of MkDocs for this site: they add pages and keep links right.

The README, the configuration page and others lie where GitHub and people without the site look for them, and the
notebooks are code. Each becomes a page of the site, and so do the commands with their options. A link to any other
file of the repository becomes a download.
"""

import importlib
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "config/README.md": "configuration.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "docs/notebooks/new_head.ipynb": "notebooks/new_head.md",
    "docs/notebooks/use_models.ipynb": "notebooks/use_models.md",
}
"""File of the repository -> page of the site."""
SOURCES = {page: source for source, page in PAGES.items()}
LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")
MERMAID = re.compile(r"^```mermaid\n.*?^```\n", re.MULTILINE | re.DOTALL)
ESCAPED = re.compile(r"\\<")
ROLE = re.compile(r":(?:func|meth|class|mod):(?=<code>)")


REMOTE = re.compile(r"""(?:\bsrc=|<link\b(?![^>]*rel="?canonical)[^>]*\bhref=)["']?((?:https?:)?//[^"'\s>]+)""")
"""What a page fetches by itself; a link that a person clicks is no such thing."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and the files that any page links to."""
    for source, page in PAGES.items():
        files.append(File.generated(config, page, content=_page_of(ROOT / source)))
    files.append(File.generated(config, "commands.md", content=_commands_page()))
    linked = set().union(*(_linked(file) for file in files.documentation_pages()))
    for target in sorted(linked - PAGES.keys()):
        if (ROOT / target).is_file() and not target.startswith("docs/"):
            files.append(File.generated(config, target, content=(ROOT / target).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Make links between files of the repository links between pages of the site."""
    here = page.file.src_uri
    folder = posixpath.dirname(SOURCES.get(here, f"docs/{here}"))

    def replaced(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        if ":" in link[2] or not (ROOT / target).exists():
            return link[0]
        address = PAGES.get(target, target.removeprefix("docs/"))
        return f"{link[1]}{posixpath.relpath(address, posixpath.dirname(here) or '.')}{link[3] or ''}"

    # The theme would fetch Mermaid from the network. Python's Markdown does not know "\\<", nor Pygments Snakemake.
    return LINK.sub(replaced, ESCAPED.sub("&lt;", MERMAID.sub("", markdown)).replace("```snakemake", "```python"))


def on_page_content(html: str, **_: Any) -> str:
    """Leave out the roles of docstrings."""
    return ROLE.sub("", html)


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a page that loads anything from the network."""
    for page in Path(config.site_dir).rglob("*.html"):
        if loaded := REMOTE.search(page.read_text(encoding="utf-8")):
            raise PluginError(f"{page.name} loads {loaded[1]} from the network")


def _linked(file: File) -> set[str]:
    """The files of the repository that a page links to."""
    folder = posixpath.dirname(SOURCES.get(file.src_uri, f"docs/{file.src_uri}"))
    return {posixpath.normpath(posixpath.join(folder, link[2])) for link in LINK.finditer(file.content_string)}


def _page_of(source: Path) -> str:
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".ipynb":
        return _markdown_of(json.loads(text))
    return f"---\nhide: [navigation]\n---\n{text}" if source.name == "README.md" and source.parent == ROOT else text


def _markdown_of(notebook: dict[str, Any]) -> str:
    """The cells of a notebook, one after the other."""
    cells = [("".join(cell["source"]), cell["cell_type"]) for cell in notebook["cells"]]
    return "\n\n".join(f"```python\n{text}\n```" if kind == "code" else text for text, kind in cells)


def _commands_page() -> str:
    """The commands with their options, from their signatures."""
    from vitcapr.commands.main import COMMANDS

    lines = ["# Commands", "", "`vitcapr COMMAND --help` prints the same. [Stages](stages.md) have their own page.", ""]
    for name in COMMANDS:
        if name != "stage":
            app = importlib.import_module(f"vitcapr.commands.{name.replace('-', '_')}").app
            lines += _explained(f"vitcapr {name}", typer.main.get_command(app))
    return "\n".join(lines)


def _explained(name: str, command: Any) -> Iterator[str]:
    if hasattr(command, "commands"):
        for word, each in command.commands.items():
            yield from _explained(f"{name} {word}", each)
        return
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context)).replace("{", "").replace("}", "")
    yield from (f"## {name}", "", f"`{name} {usage}`", "", command.help or "", "")
    yield from ("| option | meaning |", "| --- | --- |")
    for parameter in command.params:
        option, meaning = (text.replace("|", "\\|") for text in parameter.get_help_record(context))
        yield f"| `{option}` | {meaning} |".replace("[default", "\\[default").replace("[required", "\\[required")
    yield ""
