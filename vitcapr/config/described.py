"""The docstrings of the keys of a configuration: for its schema, and for options of the same name."""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache

from vitcapr.config.base import Section


def described(section: type[Section]) -> dict[str, str]:
    """The docstring of each field of the section, inherited fields included, by key.

    Pydantic can read them when a class is created, but this takes 0.2 s in every command. Only the schema needs them.
    """
    found: dict[str, str] = {}
    for ancestor in reversed(section.__mro__):
        if issubclass(ancestor, Section):
            found |= _strings_of(ancestor.__module__).get(ancestor.__name__, {})
    return {key: text for key, text in found.items() if key in section.model_fields}


@cache
def _strings_of(module: str) -> dict[str, dict[str, str]]:
    """The docstrings of the fields of each class of a module, by class and key."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_strings_under(node)) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _strings_under(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for key, text in zip(node.body, node.body[1:], strict=False):
        match key, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, inspect.cleandoc(said)
