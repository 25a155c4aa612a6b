"""A digest of Python code that ignores comments, docstrings, blank lines, layout and user-facing messages.

Texts for the user stand in four places, which are recognised by name:

- the arguments of an exception of :data:`MESSAGES`;
- the first argument of ``report.line`` and ``reporter.line``;
- ``help=`` of ``typer.Option``, ``typer.Argument`` and ``typer.Typer``;
- ``title=`` and ``description=`` of pydantic's ``Field``.

There, constants, names, attributes and f-strings of these do not count. Every other expression counts whole, texts in
it included, because it may do something: a call, an assignment, a subscript, a condition.
"""

import ast
import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.files import sha256_file, write_json

MESSAGES = frozenset({"UserError", "Diverged", "Preempted", "ValueError", "TypeError", "IndexError"})
"""Exceptions whose arguments only make a message that no result holds.

``BadImage`` and its like are left out: their text stands in ``rejected.csv``.
"""

_MESSAGE_KEYWORDS = frozenset({"what", "where", "remedy"})
_FIELD_KEYWORDS = frozenset({"title", "description"})
_HELP = frozenset({"help"})


class TreeDigests:
    """The :func:`tree_digest` of files, known without parsing them again as long as their bytes are the same.

    Args:
        remembered: a file that keeps the digests; made if absent, replaced if unreadable or from another version of
            this module, None to keep them in memory only. Deleting it costs time only.
    """

    def __init__(self, remembered: Path | None = None) -> None:
        self._file = remembered
        self._by = sha256_file(Path(__file__))
        self._known = {} if remembered is None else self._load(remembered)
        self._news = False

    def of(self, name: str, path: Path) -> str:
        """The digest of a file, remembered under ``name``, wherever the file lies.

        Raises:
            SyntaxError: it holds no Python.
        """
        source = path.read_bytes()
        key = hashlib.sha256(source).hexdigest()
        if self._known.get(name, ("", ""))[0] != key:
            self._known[name] = (key, tree_digest(source.decode("utf-8")))
            self._news = True
        return self._known[name][1]

    def remember(self) -> None:
        """Save new digests. A full or read-only disk is ignored."""
        if self._file is not None and self._news:
            with suppress(OSError, UserError):
                write_json(self._file, {"by": self._by, "files": self._known})
            self._news = False

    def _load(self, path: Path) -> dict[str, tuple[str, str]]:
        try:
            content = json.loads(path.read_bytes())
            if content["by"] != self._by:
                return {}
            return {str(name): (str(key), str(digest)) for name, (key, digest) in content["files"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


def tree_digest(source: str) -> str:
    """The digest of a source as 16 hexadecimal digits; the module docstring lists what it ignores."""
    digest = hashlib.sha256()
    for piece in _spell(ast.parse(source)):
        digest.update(piece.encode())
        digest.update(b"\x00")
    return digest.hexdigest()[:16]


def _spell(node: ast.AST) -> Iterator[str]:
    """The tree in prefix order; empty fields are left out, for newer Pythons add some."""
    yield type(node).__name__
    if isinstance(node, ast.Call) and (texts := _texts_of(node)) is not None:
        yield from _spell_with_texts(node, *texts)
        return
    for field in node._fields:
        value = getattr(node, field, None)
        if value is None and not (field == "value" and isinstance(node, ast.Constant)):
            continue
        if isinstance(value, ast.AST):
            yield field
            yield from _spell(value)
        elif isinstance(value, list):
            kept = [item for item in value if not _is_bare_string(item)]
            if kept:
                yield f"{field}["
                for item in kept:
                    if isinstance(item, ast.AST):
                        yield from _spell(item)
                    else:
                        yield repr(item)
                yield "]"
        else:
            yield f"{field}={value!r}"


def _texts_of(call: ast.Call) -> tuple[int, frozenset[str]] | None:
    """How many positional arguments of a call, and which keyword arguments, are texts for the user."""
    match call.func:
        case ast.Name(id=name) if name in MESSAGES:
            return len(call.args), _MESSAGE_KEYWORDS
        case ast.Name(id="Field"):
            return 0, _FIELD_KEYWORDS
        case ast.Attribute(value=ast.Name(id="typer"), attr="Option" | "Argument" | "Typer"):
            return 0, _HELP
        case ast.Attribute(
            value=ast.Name(id="report" | "reporter") | ast.Attribute(attr="reporter" | "_reporter"), attr="line"
        ):
            return 1, frozenset()
    return None


def _spell_with_texts(call: ast.Call, positional: int, keywords: frozenset[str]) -> Iterator[str]:
    yield from _spell(call.func)
    yield "args["
    for place, argument in enumerate(call.args):
        yield "argument"
        yield from _spell_text(argument) if place < positional else _spell(argument)
    yield "]keywords["
    for keyword in call.keywords:
        spelled = list(_spell_text(keyword.value) if keyword.arg in keywords else _spell(keyword.value))
        if spelled:
            yield f"arg={keyword.arg!r}"
            yield from spelled
    yield "]"


def _spell_text(node: ast.expr) -> Iterator[str]:
    """Of a text for the user, only the expressions that may do something."""
    match node:
        case ast.Constant() | ast.Name():
            return
        case ast.Attribute(value=value):
            yield from _spell_text(value)
        case ast.JoinedStr(values=parts):
            for part in parts:
                yield from _spell_text(part)
        case ast.FormattedValue(value=value, format_spec=layout):
            yield from _spell_text(value)
            if layout is not None:
                yield from _spell_text(layout)
        case _:
            yield from _spell(node)


def _is_bare_string(node: object) -> bool:
    """A docstring, of whatever it stands under: a string that nothing is done with."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
