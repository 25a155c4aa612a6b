"""Writes the explorer's folder: a page, its scripts, the data as scripts, and the pictures."""

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from vitcapr.data.images import BadImage, ImageSource, thumbnail
from vitcapr.errors import UserError
from vitcapr.extensions.explorer.contents import Contents
from vitcapr.formats.page import COLOURS, STYLE
from vitcapr.progress import Reporter
from vitcapr.report.attended import SCRIPT
from vitcapr.workers import usable_cores

PAGE = Path(__file__).with_name("page")
"""The page and its scripts, which are copied as they are."""
MARK = "data/overview.js"
"""The file by which a folder is known as an explorer's."""
SIDE = 320
"""Pixels of the longer side of a picture."""
_LOOK = {"quality": 75, "method": 2}
"""Half the time of method 4, 3 % larger."""


def write_explorer(folder: Path, contents: Contents, report: Reporter, first_page: str | None = None) -> None:
    """Write the folder under a temporary name and rename it. An earlier explorer in its place is replaced.

    Args:
        first_page: the address of the experiment's first page, as seen from the folder.
    """
    with _replaced(folder) as new:
        for file in (*PAGE.iterdir(), SCRIPT, COLOURS, STYLE):
            shutil.copyfile(file, new / file.name)
        overview, images = contents.overview(), contents.images()
        images["pictures"] = _write_pictures(new / "pictures", contents.gallery.images, report)
        missing = images["pictures"].count(False)
        if missing:
            report.line(f"explore: {missing} pictures cannot be read; the page says so in their places")
        for parts in (contents.details(), contents.neighbours(), contents.written_neighbours(), contents.maps()):
            for key, content in parts:
                _write_data(new, key, content)
        _write_data(new, "images", images)
        _write_data(new, "overview", {**overview, "page": first_page})


def as_script(key: str, content: Any) -> str:
    """Write data as a script, because pages that are opened as files may read nothing else."""
    plain = json.dumps(content, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return f'explorer.receive("{key}",{plain});\n'


def _write_data(folder: Path, key: str, content: Any) -> None:
    file = folder / "data" / f"{key}.js"
    file.parent.mkdir(exist_ok=True)
    # A lone surrogate, which UTF-8 does not have, is written as JavaScript's own escape.
    file.write_text(as_script(key, content), encoding="utf-8", errors="backslashreplace")


def _write_pictures(folder: Path, images: pd.DataFrame, report: Reporter) -> list[bool]:
    """Write each picture under its number. Returns whether it could be read."""
    folder.mkdir()
    with ExitStack() as stack:
        sources = {root: stack.enter_context(ImageSource(root)) for root in images["root"].unique()}

        def write(number: int) -> bool:
            image = images.iloc[number]
            try:
                picture = sources[image["root"]].open(image["path"], max_pixels=int(image["width"] * image["height"]))
            except BadImage:
                return False
            (folder / f"{number}.webp").write_bytes(thumbnail(picture, SIDE, "WEBP", **_LOOK))
            return True

        pool = stack.enter_context(ThreadPoolExecutor(usable_cores()))
        stack.callback(partial(pool.shutdown, cancel_futures=True))
        readable = []
        with report.track("explore: pictures", len(images), "pictures") as tracker:
            for written in pool.map(write, range(len(images))):
                readable.append(written)
                tracker.advance()
    return readable


@contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    """Yield a new folder beside ``folder`` that takes its place when the block ends without an error."""
    if folder.exists() and not (folder / MARK).is_file() and (folder.is_file() or any(folder.iterdir())):
        remedy = "name another folder with --output"
        raise UserError("the folder holds something other than an explorer", where=folder, remedy=remedy)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{folder.name}.", suffix=".partial", dir=folder.parent) as beside:
        new = Path(beside, "new")
        new.mkdir()
        yield new
        if folder.exists():
            folder.rename(Path(beside, "old"))
        new.rename(folder)
