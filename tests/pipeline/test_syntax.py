"""What moves the digest of a file of code, what does not, and that remembering one changes nothing."""

import ast
from pathlib import Path

import pytest

from vitcapr.pipeline import syntax
from vitcapr.pipeline.syntax import MESSAGES, TreeDigests, tree_digest

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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import math", "import math  # for pi"),
        ('"""A module."""', ""),
        ('    """Of a circle."""\n', '    """Of a disc.\n\n    More.\n    """\n'),
        ('"""The limit."""', ""),
        ("math.pi * radius**2", "(math.pi\n            * radius ** 2)"),
    ],
)
def test_remarks_and_layout_do_not_count(old: str, new: str) -> None:
    assert old in SOURCE
    assert tree_digest(SOURCE.replace(old, new)) == tree_digest(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("radius**2", "radius**3"),
        ("LIMIT: int = 3", "LIMIT: int = 3.0"),
        ("LIMIT: int = 3", "LIMIT: int = None"),
        ("LIMIT: int = 3", "LIMIT: int = '3'"),
        ("LIMIT", "BOUND"),
        ("math.pi * radius**2", "radius**2 * math.pi"),
        ("radius: float)", "radius: float = 1)"),
    ],
)
def test_code_counts(old: str, new: str) -> None:
    assert old in SOURCE
    assert tree_digest(SOURCE.replace(old, new)) != tree_digest(SOURCE)


def test_a_string_that_is_used_counts() -> None:
    assert tree_digest("print('a')") != tree_digest("print('b')")


def test_none_is_not_nothing() -> None:
    assert tree_digest("def f():\n    return None") != tree_digest("def f():\n    return")
    assert tree_digest("x = None") != tree_digest("x = ...")


# What begins with "shown" and the layout of values are text for the user; everything else does something.
TEXTS = """
def check(size, kept, reporter, log):
    if size > 3:
        raise UserError("shown", where=shown_path, remedy=f"shown {shown_name:>8} shown {shown_object.shown_part!r}")
    elif kept.size == 4:
        raise ValueError(f"shown {', '.join(sorted(kept))} shown {kept.pop():.2f} shown {shown_object.shown_size}")
    elif size < 5 or kept:
        raise IndexError(f"shown {(found := size)}", kept[0], "shown", "kept" if size else "kept")
    elif found:
        raise Refused("refused", code=7, where="inside") from kept
    elif found is None:
        raise SystemExit(2)
    reporter.line("shown", to_terminal=True)
    self._reporter.line(f"shown {size + 1} shown")
    self.reporter.line(shown_message)
    report.line("shown")
    log.line("written", help="kept")
    typer.Option("--size", help="shown", min=1)
    typer.Argument(help=f"shown {shown_default}")
    typer.echo("written", help="kept")
    Field(4, ge=1, title="shown", description="shown")
    field(description="kept")
"""


LAYOUT = (">8", ".2f")
OPERATORS = {ast.Gt: ast.GtE(), ast.Lt: ast.LtE(), ast.Eq: ast.NotEq(), ast.Is: ast.IsNot(), ast.Or: ast.And()}


def leaves(tree: ast.AST) -> list[tuple[ast.AST, str]]:
    """Every name, value and operator: the node and its field."""
    fields = ((node, name) for node in ast.walk(tree) for name in node._fields)
    wanted = (str, int, ast.operator, ast.cmpop, ast.boolop)
    return [(node, name) for node, name in fields if isinstance(getattr(node, name, None), wanted)]


def changed(value: object) -> object:
    if isinstance(value, ast.AST):
        return OPERATORS.get(type(value), ast.Sub())
    if isinstance(value, bool):
        return not value
    return f"{value}x" if isinstance(value, str) else int(str(value)) + 1


@pytest.mark.parametrize("place", range(len(leaves(ast.parse(TEXTS)))))
def test_every_change_counts_but_that_of_a_text(place: int) -> None:
    tree = ast.parse(TEXTS)
    node, name = leaves(tree)[place]
    old = getattr(node, name)
    if isinstance(node, ast.FormattedValue):  # !r, !s or nothing
        is_text, new = True, ord("a")
    else:
        is_text, new = isinstance(old, str) and (old.strip().startswith("shown") or old in LAYOUT), changed(old)
    setattr(node, name, new)
    assert (tree_digest(ast.unparse(tree)) == tree_digest(TEXTS)) is is_text, f"{name}: {old!r} to {new!r}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('help="shown", ', ""),
        ('title="shown", ', ""),
        ("where=shown_path, ", ""),
        ("{shown_name:>8} shown", "shown"),
        ('line("shown", ', "line(shown_message, "),
    ],
)
def test_a_text_more_or_less_does_not_count(old: str, new: str) -> None:
    assert old in TEXTS
    assert tree_digest(TEXTS.replace(old, new)) == tree_digest(TEXTS)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (" from kept", ""),
        ("raise SystemExit(2)", "raise SystemExit"),
        ('raise UserError("shown", ', "raise UserError("),
        ('    reporter.line("shown", to_terminal=True)\n', ""),
        ("{kept.pop():.2f}", ""),
        ("{(found := size)}", "{size}"),
        ("{size + 1}", "{size - 1}"),
        ("min=1", ""),
        ("Refused(", "UserError("),
    ],
)
def test_operations_on_a_text_count(old: str, new: str) -> None:
    assert old in TEXTS
    assert tree_digest(TEXTS.replace(old, new)) != tree_digest(TEXTS)


def test_the_names_of_texts_mean_what_they_say() -> None:
    """They are recognised by name alone, so that nothing else may have these names."""
    imports, classes = set(), set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                imports |= {(node.module, alias.asname or alias.name) for alias in node.names}
            elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                classes.add((path.stem, node.name))
    watched = MESSAGES | {"Field", "typer"}
    assert {pair for pair in imports if pair[1] in watched} == {
        ("pydantic", "Field"),
        ("vitcapr.errors", "UserError"),
        ("vitcapr.errors", "Preempted"),
        ("vitcapr.training.loop", "Diverged"),
    }
    assert {pair for pair in classes if pair[1] in watched} == {
        ("errors", "UserError"),
        ("errors", "Preempted"),
        ("loop", "Diverged"),
    }


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_remembered_digests_equal_computed_ones(code: Path, tmp_path: Path) -> None:
    digests = TreeDigests(tmp_path / "remembered.json")
    assert digests.of("module", code) == TreeDigests().of("module", code) == tree_digest(SOURCE)


def test_a_known_file_is_not_parsed_again(code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = TreeDigests(tmp_path / "remembered.json")
    digest = first.of("module", code)
    first.remember()
    monkeypatch.setattr(syntax, "tree_digest", lambda _: pytest.fail("parsed again"))
    assert TreeDigests(tmp_path / "remembered.json").of("module", code) == digest


def test_other_bytes_are_another_file_with_any_time_stamp(code: Path, tmp_path: Path) -> None:
    digests = TreeDigests(tmp_path / "remembered.json")
    digest = digests.of("module", code)
    digests.remember()
    code.write_text(SOURCE.replace("radius**2", "radius**3"), encoding="utf-8")
    assert digests.of("module", code) != digest
    assert TreeDigests(tmp_path / "remembered.json").of("module", code) == digests.of("module", code)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"by": 1}', b'{"by": "another version", "files": {}}', b"\xff"]
)
def test_a_file_that_cannot_be_used_is_replaced(code: Path, tmp_path: Path, content: bytes) -> None:
    remembered = tmp_path / "remembered.json"
    remembered.write_bytes(content)
    digests = TreeDigests(remembered)
    assert digests.of("module", code) == tree_digest(SOURCE)
    digests.remember()
    assert '"module"' in remembered.read_text(encoding="utf-8")


def test_a_folder_that_may_not_be_written_to_stops_nothing(code: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    digests = TreeDigests(tmp_path / "file" / "remembered.json")
    digests.of("module", code)
    digests.remember()
