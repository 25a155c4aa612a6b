"""A digest of Python code that ignores comments, docstrings, layout and messages for the user."""

import ast
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes, write_json

MESSAGES = frozenset({"UserError", "Diverged", "Preempted", "ValueError", "TypeError", "IndexError"})
"""Exceptions whose arguments only make a message that no result holds.

``BadImage`` and its like are left out: their text stands in ``rejected.csv``.
"""


def digests(paths: Mapping[str, Path], remembered: Path | None = None) -> dict[str, str]:
    """The :func:`tree_digest` of each file.

    Args:
        remembered: a file of known digests, so that a job need not parse the package again. Deleting it costs only
            time.
    """
    memory = _memory(remembered)
    size, found = len(memory), {}
    for name, path in paths.items():
        source = path.read_bytes()
        key = sha256_bytes(_this_module() + source)
        if key not in memory:
            memory[key] = tree_digest(source.decode())
        found[name] = memory[key]
    if remembered is not None and len(memory) > size:
        with suppress(OSError, UserError):  # the disk is full or read-only
            write_json(remembered, memory)
    return found


@cache
def _memory(remembered: Path | None) -> dict[str, str]:
    try:
        content = {} if remembered is None else json.loads(remembered.read_bytes())
        return {key: digest for key, digest in content.items() if isinstance(digest, str)}
    except (OSError, ValueError, AttributeError):
        return {}


@cache
def _this_module() -> bytes:
    """A change of this module changes all digests."""
    return Path(__file__).read_bytes()


def tree_digest(source: str) -> str:
    """The digest of a source as 16 hexadecimal digits.

    It also ignores the arguments of the exceptions of :data:`MESSAGES` and of ``report.line`` and ``reporter.line``,
    and ``title`` and ``description`` of pydantic's ``Field``.
    """
    return hashlib.sha256(_spell(_WithoutTexts().visit(ast.parse(source))).encode()).hexdigest()[:16]


class _WithoutTexts(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Drop docstrings, of whatever they stand under: strings that nothing is done with."""
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        match node.func:
            case ast.Name(id=name) if name in MESSAGES:
                node.args, node.keywords = [], []
            case ast.Name(id="Field"):
                node.keywords = [each for each in node.keywords if each.arg not in ("title", "description")]
            case ast.Attribute(
                value=ast.Name(id="report" | "reporter") | ast.Attribute(attr="reporter" | "_reporter"), attr="line"
            ):
                node.args, node.keywords = [], []
        return self.generic_visit(node)


def _spell(node: object) -> str:
    """The tree as text, without empty fields: newer Pythons add some."""
    if isinstance(node, ast.AST):
        named = {name: getattr(node, name, None) for name in node._fields}
        fields = [(n, v) for n, v in named.items() if v not in (None, []) or isinstance(node, ast.Constant)]
        return f"{type(node).__name__}({', '.join(f'{name}={_spell(value)}' for name, value in fields)})"
    return f"[{', '.join(map(_spell, node))}]" if isinstance(node, list) else repr(node)
