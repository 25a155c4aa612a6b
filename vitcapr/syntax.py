"""A digest of Python code that stays the same under comments, docstrings, blank lines and layout."""

import ast
import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.files import sha256_file, write_json


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
        """Write down what is new; a disk that is full or may not be written to stops nothing."""
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
    """16 hexadecimal digits that stay the same under comments, docstrings, blank lines and layout."""
    digest = hashlib.sha256()
    for piece in _spell(ast.parse(source)):
        digest.update(piece.encode())
        digest.update(b"\x00")
    return digest.hexdigest()[:16]


def _spell(node: ast.AST) -> Iterator[str]:
    """The tree in prefix order; empty fields are left out, for newer Pythons add some."""
    yield type(node).__name__
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


def _is_bare_string(node: object) -> bool:
    """A docstring, of whatever it stands under: a string that nothing is done with."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
