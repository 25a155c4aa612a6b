"""The documentation site: ``make docs`` writes it to ``site/``. A warning is an error.

The source folder is the repository, so that a link between two files of the repository is a link between two pages.
"""

import importlib
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import typer
from pygments.lexers.python import PythonLexer
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

project = "vitcapr"
root_doc = "docs/index"
smartquotes = False  # They make one dash of the two before an option.
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "config/README.md", "docs/**"]
exclude_patterns = [".*", "results", "site", "build", "dist"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "exclude-members": "check_attention, check_rows, seen"}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "vitcapr"
html_css_files = ["site.css"]
html_static_path = ["site.css"]
html_extra_path = ["start"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

COMMANDS = "docs/commands"
TEXTS = "texts.js"
ARTICLE = re.compile(r"<article[^>]* role=\"main\".*?</article>", re.DOTALL)
MERMAID = re.compile(r"^```mermaid\n.*?^```\n", re.MULTILINE | re.DOTALL)
REMOTE = re.compile(r"""(?:\bsrc=|<link\b(?![^>]*rel="?canonical)[^>]*\bhref=)["']?((?:https?:)?//[^"'\s>]+)""")
"""What a page fetches by itself; a link that a person clicks fetches nothing."""


def setup(app: Sphinx) -> None:
    app.add_lexer("snakemake", PythonLexer)
    # Before autodoc, which puts texts in the places of the defaults of functions.
    app.connect("source-read", partial(convert, "\n".join(command_pages())))
    app.connect("html-page-context", add_texts)
    app.connect("build-finished", finish)


def convert(commands: str, _: Sphinx, page: str, source: list[str]) -> None:
    """Make a page of a notebook, and of the commands; leave out what the theme would fetch from the network to draw."""
    if source[0].startswith("{"):
        source[0] = cells(json.loads(source[0]))
    elif page == COMMANDS:
        source[0] += commands
    source[0] = MERMAID.sub("", source[0])


def add_texts(app: Sphinx, page: str, *_: Any) -> None:
    if page == "search":
        app.add_js_file(TEXTS)


def cells(notebook: dict[str, Any]) -> str:
    """The cells of a notebook, one after the other."""
    texts = [("".join(cell["source"]), cell["cell_type"]) for cell in notebook["cells"]]
    return "\n\n".join(f"```python\n{text}\n```" if kind == "code" else text for text, kind in texts)


def command_pages() -> Iterator[str]:
    """The commands with their options, from their signatures."""
    from vitcapr.commands.main import command_modules

    for name, module in command_modules().items():
        if name != "stage":
            app = importlib.import_module(module).app
            yield from explain(f"vitcapr {name}", typer.main.get_command(app))


def explain(name: str, command: Any) -> Iterator[str]:
    if hasattr(command, "commands"):
        for word, each in command.commands.items():
            yield from explain(f"{name} {word}", each)
        return
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context)).replace("{", "").replace("}", "")
    yield from (f"## {name}", "", f"`{name} {usage}`", "", command.help or "", "")
    yield from ("| option | meaning |", "| --- | --- |")
    for parameter in command.params:
        option, meaning = (" ".join(text.replace("|", "\\|").split()) for text in parameter.get_help_record(context))
        yield f"| `{option}` | {meaning} |".replace("[default", "\\[default").replace("[required", "\\[required")
    yield ""


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Refuse a page that loads anything from the network, and write the texts of the pages for the search.

    The search fetches the pages that it finds, for excerpts. A browser lets a page that is opened from the disk fetch
    nothing, so there it reads the texts from a script.
    """
    if exception:
        return
    texts, folder = {}, Path(app.outdir)
    for page in sorted(folder.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        if loaded := REMOTE.search(text):
            raise ExtensionError(f"{page.name} loads {loaded[1]} from the network")
        if article := ARTICLE.search(text):
            texts[page.relative_to(folder).as_posix()] = article[0]
    script = "fetch = async (address) => new Response(pages[address.replace(/^\\.\\//, '')]);"
    (folder / "_static" / TEXTS).write_text(
        f'if (location.protocol === "file:") {{ const pages = {json.dumps(texts)}; {script} }}\n', encoding="utf-8"
    )
