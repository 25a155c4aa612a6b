"""Pictures and data sets of a few pixels, made by the tests themselves."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tests.data_sets import encoded

MakePicture = Callable[..., bytes]


@pytest.fixture
def picture() -> MakePicture:
    """``picture(color, size, format)``: the bytes of a picture file of one colour."""

    def make(color: object = (200, 30, 60), size: tuple[int, int] = (6, 4), format: str = "JPEG", **save) -> bytes:
        return encoded(Image.new("L" if isinstance(color, int) else "RGB", size, color), format, **save)

    return make


@pytest.fixture
def write_files() -> Callable[[Path, dict[str, bytes | str]], Path]:
    """``write_files(folder, {path: content})``."""

    def write(folder: Path, files: dict[str, bytes | str]) -> Path:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    return write


@pytest.fixture
def write_zip() -> Callable[[Path, dict[str, bytes | str]], Path]:
    """``write_zip(path, {name: content})``, with the folder entries and the Mac's shadow tree of the official zips."""

    def write(path: Path, files: dict[str, bytes | str]) -> Path:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for folder in sorted({name.rpartition("/")[0] for name in files} - {""}):
                archive.writestr(f"{folder}/", b"")
            for name, content in files.items():
                archive.writestr(name, content)
                folder, _, base = name.rpartition("/")
                archive.writestr(f"__MACOSX/{folder}/._{base}", b"\x00\x05\x16\x07")
        return path

    return write
