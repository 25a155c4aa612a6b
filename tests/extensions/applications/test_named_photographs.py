from pathlib import Path

import pytest

from vitcapr.extensions.applications.named_photographs import find_photographs


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("b.JPG", "a.png", ".hidden.png", "a.png.attention.png", "notes.txt", "deep/c.webp", "odd[1].png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(*arguments: str) -> list[str]:
    return [str(path) for path in find_photographs(arguments)[0]]


@pytest.mark.usefixtures("folder")
def test_files_folders_and_patterns() -> None:
    assert names(".") == ["a.png", "b.JPG", "odd[1].png"]
    assert names("b.JPG", ".", "b.JPG") == ["b.JPG", "a.png", "odd[1].png"]
    assert names("**/*") == ["a.png", "b.JPG", "deep/c.webp", "odd[1].png"]
    assert names("odd[1].png") == ["odd[1].png"]
    assert names("notes.txt") == ["notes.txt"]


def test_names_without_a_picture_are_listed_with_the_reason(folder: Path) -> None:
    (folder / "empty").mkdir()
    found, nothing, skipped = find_photographs(["no.png", "*.bmp", "empty", "a.png", "."])
    assert [path.name for path in found] == ["a.png", "b.JPG", "odd[1].png"]
    assert skipped == {".": 1}  # notes.txt; neither the hidden file nor the figure
    assert nothing == {
        "no.png": "no such file",
        "*.bmp": "no picture matches",
        "empty": "no picture in this folder",
    }
