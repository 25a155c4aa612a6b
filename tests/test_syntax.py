"""What moves the digest of a file of code, what does not, and that remembering one changes nothing."""

from pathlib import Path

import pytest

from vitcapr import syntax
from vitcapr.syntax import TreeDigests, tree_digest

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


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_what_is_remembered_is_what_is_computed(code: Path, tmp_path: Path) -> None:
    digests = TreeDigests(tmp_path / "remembered.json")
    assert digests.of("module", code) == TreeDigests().of("module", code) == tree_digest(SOURCE)


def test_a_known_file_is_not_parsed_again(code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = TreeDigests(tmp_path / "remembered.json")
    digest = first.of("module", code)
    first.remember()
    monkeypatch.setattr(syntax, "tree_digest", lambda _: pytest.fail("parsed again"))
    assert TreeDigests(tmp_path / "remembered.json").of("module", code) == digest


def test_other_bytes_are_another_file_whatever_its_times(code: Path, tmp_path: Path) -> None:
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
