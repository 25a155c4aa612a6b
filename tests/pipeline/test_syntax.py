"""What moves the digest of a file of code, what does not, and that remembering one changes nothing."""

import ast
from pathlib import Path

import pytest

from vitcapr.pipeline import code as syntax
from vitcapr.pipeline.code import MESSAGES, digests, tree_digest

PACKAGE = Path(syntax.__file__).parents[1]

SOURCE = '''
"""A module."""

import math

LIMIT: int = 3
"""The limit."""


def area(radius: float) -> float:
    """Of a circle."""
    return math.pi * radius**2
'''


def edited(*pairs: tuple[str, str]) -> list[tuple[str, str]]:
    """The source and each edit of it."""
    assert all(old in SOURCE for old, _ in pairs)
    return [(SOURCE, SOURCE.replace(old, new)) for old, new in pairs]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *edited(
            ("import math", "import math  # for pi"),
            ('"""A module."""', ""),
            ('    """Of a circle."""\n', '    """Of a disc.\n\n    More.\n    """\n'),
            ('"""The limit."""', ""),
            ("math.pi * radius**2", "(math.pi\n            * radius ** 2)"),
        ),
        ('raise UserError("a", where=path, remedy=f"b {name}")', 'raise UserError(f"c {size:>8}")'),
        ('raise ValueError(f"{kept[0]} is short")', "raise ValueError()"),
        ('reporter.line("a", to_terminal=True)', "reporter.line(message)"),
        ('self.reporter.line("a")', 'self.reporter.line("b")'),
        ('report.line("a")', 'report.line(f"{a}")'),
    ],
)
def test_remarks_layout_and_texts_for_the_user_do_not_count(one: str, other: str) -> None:
    assert tree_digest(one) == tree_digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *edited(
            ("radius**2", "radius**3"),
            ("LIMIT: int = 3", "LIMIT: int = 3.0"),
            ("LIMIT: int = 3", "LIMIT: int = None"),
            ("LIMIT: int = 3", "LIMIT: int = '3'"),
            ("LIMIT", "BOUND"),
            ("math.pi * radius**2", "radius**2 * math.pi"),
            ("radius: float)", "radius: float = 1)"),
        ),
        ("print('a')", "print('b')"),
        ("def f():\n    return None", "def f():\n    return"),
        ("x = None", "x = ..."),
        ('raise UserError("a")', 'raise ValueError("a")'),
        ('raise BadImage("a")', 'raise BadImage("b")'),
        ('raise UserError("a") from error', 'raise UserError("a")'),
        ('report.line("a")', 'report.file("a")'),
        ('log.line("a")', 'log.line("b")'),
    ],
)
def test_everything_else_counts(one: str, other: str) -> None:
    assert tree_digest(one) != tree_digest(other)


def test_the_names_of_texts_mean_what_they_say() -> None:
    """They are recognised by name alone, so that nothing else may have these names."""
    imports, classes = set(), set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                imports |= {(node.module, alias.asname or alias.name) for alias in node.names}
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                classes.add((path.stem, node.name))
    assert {pair for pair in imports if pair[1] in MESSAGES} == {
        ("vitcapr.errors", "UserError"),
        ("vitcapr.errors", "Preempted"),
        ("vitcapr.training.loop", "Diverged"),
    }
    assert {pair for pair in classes if pair[1] in MESSAGES} == {
        ("errors", "UserError"),
        ("errors", "Preempted"),
        ("loop", "Diverged"),
    }


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_a_known_file_is_not_parsed_again(code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = tmp_path / "remembered.json"
    assert digests({"a": code}, remembered) == digests({"a": code}) == {"a": tree_digest(SOURCE)}
    with monkeypatch.context() as patched:
        patched.setattr(syntax, "tree_digest", lambda _: pytest.fail("parsed again"))
        syntax._memory.cache_clear()
        assert digests({"b": code}, remembered) == {"b": tree_digest(SOURCE)}
    code.write_text(SOURCE.replace("radius**2", "radius**3"), encoding="utf-8")
    assert digests({"a": code}, remembered) != {"a": tree_digest(SOURCE)}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"by": 1, "files": {}}', b"\xff", None])
def test_a_file_that_cannot_be_read_or_written_costs_only_time(
    code: Path, tmp_path: Path, content: bytes | None
) -> None:
    remembered = tmp_path / "remembered.json" / ("in_a_file" if content is None else "")
    (tmp_path / "remembered.json").write_bytes(content or b"")
    assert digests({"a": code}, remembered) == {"a": tree_digest(SOURCE)}
