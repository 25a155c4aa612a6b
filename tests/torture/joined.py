"""Foreign inputs of the four joints: files that say which rows belong together, truly or not.

Every input is right in its form. A wrong one has rows of other images, patches of other places, partitions or ids of
other rows, or rows that stand several times. It has to stop in one line, or the rows that cannot be have to be named.
A right one with names in another convention has to be taken.
"""

import random
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
from PIL import Image

import vitcapr
from tests.data_sets import write_data_set
from tests.torture.tally import Tally
from vitcapr.errors import UserError
from vitcapr.extensions.exchange.foreign_files import open_foreign
from vitcapr.extensions.exchange.importing import import_features

ROWS, SIDE, WIDTH = 240, 4, 12
NAMES = [f"{5 * row}.png" for row in range(ROWS)]  # In another order by number than by name.
Array = np.ndarray
Said = Callable[[], list[str]]
"""Reads an input, and returns the lines that were said."""


@cache
def data_set(folder: Path) -> tuple[Path, dict[str, Array], list[list[str]]]:
    """Photographs of coloured squares with their features, a linear map of the colours, and three captions each."""
    drawn = np.random.default_rng(0)
    squares = drawn.integers(0, 255, (ROWS, SIDE, SIDE, 3)).astype(np.uint8)
    words = [[f"s{place}c{red // 32}" for place, red in enumerate(small.reshape(-1, 3)[:8, 0])] for small in squares]
    captions = [[" ".join(drawn.permutation(eight)[:6]) for _ in range(3)] for eight in words]
    folder.mkdir(parents=True)
    for name, small in zip(NAMES, squares, strict=True):
        Image.fromarray(small.repeat(8, axis=0).repeat(8, axis=1)).save(folder / name)
    listed = [(name, "en", text) for name, texts in zip(NAMES, captions, strict=True) for text in texts]
    data = write_data_set(folder, dict.fromkeys(NAMES, "train"), listed)
    flat = squares.reshape(ROWS, SIDE * SIDE, 3) / 255.0
    noise = drawn.normal(size=(ROWS, SIDE * SIDE, WIDTH)) * 0.1
    patches = (flat @ drawn.normal(size=(3, WIDTH)) + noise).astype(np.float32)
    vectors = (flat.reshape(ROWS, -1) @ drawn.normal(size=(SIDE * SIDE * 3, 32))).astype(np.float32)
    return data, {"cls": vectors, "patches": patches}, captions


def in_another_order(draw: random.Random) -> tuple[str, Array]:
    """An order of the rows that happens in practice, or at random."""
    rows = np.arange(ROWS)
    by_name = np.array(sorted(range(ROWS), key=lambda row: NAMES[row]))
    orders = {
        "shifted": np.roll(rows, draw.choice((-1, 1))),
        "reversed": rows[::-1],
        "sorted by name": by_name,
        "sorted back": np.argsort(by_name),
        "shuffled": np.random.default_rng(draw.randrange(1 << 30)).permutation(ROWS),
    }
    name = draw.choice(sorted(orders))
    return name, orders[name]


def import_rows(box: Path, data: Path, ids: list[str], arrays: dict[str, Array], grid: tuple[int, int]) -> Said:
    """The import of a file of arrays over all images."""
    with h5py.File(box / "features.h5", "w") as file:
        file["image_id"] = ids
        file.update(arrays)
    return lambda: _imported(box / "features.h5", box, data, grid)


def _imported(source: Path, box: Path, data: Path, grid: tuple[int, int]) -> list[str]:
    said: list[str] = []
    with open_foreign(source, None, "images") as foreign:
        manifest = vitcapr.read_manifest(data)
        options = {"data": manifest, "identity": "image_id", "grid": grid}
        import_features(foreign, box / "stores", "x", **options, advance=lambda _: None, say=said.append)  # type: ignore[arg-type]
    return said


def order(box: Path, root: Path, draw: random.Random) -> tuple[str, bool, Said]:
    data, arrays, _ = data_set(root)
    name, rows = in_another_order(draw)
    kind = draw.choice(("cls", "patches"))
    return f"{kind} {name}", True, import_rows(box, data, NAMES, {kind: arrays[kind][rows]}, (0, 0))


def grid(box: Path, root: Path, draw: random.Random) -> tuple[str, bool, Said]:
    data, arrays, _ = data_set(root)
    patches = arrays["patches"]
    cells = patches.reshape(ROWS, SIDE, SIDE, WIDTH)
    readings = {
        "right": (patches, (SIDE, SIDE)),
        "right, with a grid": (cells, (0, 0)),
        "transposed": (cells.swapaxes(1, 2).reshape(patches.shape), (SIDE, SIDE)),
        "mirrored": (cells[:, :, ::-1], (0, 0)),
        "upside down": (cells[:, ::-1], (0, 0)),
        "tokens shifted": (np.roll(patches, draw.choice((-1, 1)), axis=1), (SIDE, SIDE)),
        "first token kept": (np.concatenate([patches[:, :1], patches], axis=1), (0, 0)),
        "channels first": (patches.swapaxes(1, 2), (0, 0)),
        "tokens shuffled": (patches[:, np.random.default_rng(draw.randrange(99)).permutation(16)], (SIDE, SIDE)),
    }
    name = draw.choice(sorted(readings))
    values, shape = readings[name]
    return name, not name.startswith("right"), import_rows(box, data, NAMES, {"patches": values}, shape)


def partitions(box: Path, root: Path, draw: random.Random) -> tuple[str, bool, Said]:
    """clip-retrieval's folder of four parts."""
    data, arrays, _ = data_set(root)
    parts, source = np.array_split(np.arange(ROWS), 4), box / "parts"
    way, one = draw.choice(("right", "missing", "exchanged", "a row less")), draw.randrange(4)
    for folder in ("img_emb", "metadata"):
        (source / folder).mkdir(parents=True)
    for number, rows in enumerate(parts):
        seen = (
            parts[(number + 1) % 4]
            if way == "exchanged"
            else rows[: -1 if (way, number) == ("a row less", one) else None]
        )
        np.save(source / f"img_emb/img_emb_{number}.npy", arrays["cls"][seen])
        table = pd.DataFrame({"image_path": [f"/home/me/{NAMES[row]}" for row in rows]})
        table.to_parquet(source / f"metadata/metadata_{number}.parquet")
    if way == "missing":
        gone = draw.choice((f"img_emb/img_emb_{one}.npy", f"metadata/metadata_{one}.parquet"))
        (source / gone).unlink()
    return way, way != "right", lambda: _imported(source, box, data, (0, 0))


def ids(box: Path, root: Path, draw: random.Random) -> tuple[str, bool, Said]:
    """Names in another convention with the right rows, or names that belong to other rows."""
    data, arrays, _ = data_set(root)
    conventions: dict[str, tuple[list[str], bool]] = {
        "without a suffix": ([name.removesuffix(".png") for name in NAMES], False),
        "with folders": ([f"/data/set/{name}" for name in NAMES], False),
        "of Windows": ([f"C:\\data\\{name}" for name in NAMES], False),
        "numbers of rows": ([str(row) for row in range(ROWS)], True),
        "the next image's": ([*NAMES[1:], NAMES[0]], True),
        "one twice": ([*NAMES[:-1], NAMES[0]], True),
        "one without an id": ([*NAMES[:-1], ""], True),
    }
    name = draw.choice(sorted(conventions))
    names, wrong = conventions[name]
    rows = np.array(draw.sample(range(ROWS), ROWS))
    shuffled = {"cls": arrays["cls"][rows]}
    return name, wrong, import_rows(box, data, [names[row] for row in rows], shuffled, (0, 0))


def duplicates(box: Path, root: Path, draw: random.Random) -> tuple[str, bool, Said]:
    """Rows that stand several times, in features or in embeddings."""
    data, arrays, _ = data_set(root)
    vectors, count = arrays["cls"].copy(), draw.randrange(2, 6)
    some = draw.sample(range(ROWS), count)
    way = draw.choice(("zeros", "one number", "not finite", "repeated", "an image once a caption"))
    if way == "an image once a caption":
        texts = vectors.repeat(count, axis=0) + np.random.default_rng(0).normal(size=(ROWS * count, 32)) * 0.1
        return way, True, lambda: _scored(vectors.repeat(count, axis=0), texts)
    vectors[some] = {"zeros": 0, "one number": 0.5, "not finite": np.nan, "repeated": vectors[some[0]]}[way]
    return way, True, import_rows(box, data, NAMES, {"cls": vectors}, (0, 0))


def results(_: Path, root: Path, draw: random.Random) -> tuple[str, bool, Said]:
    """Captions of other images, or embeddings of them."""
    _data, arrays, captions = data_set(root)
    name, rows = draw.choice((("right", np.arange(ROWS)), in_another_order(draw)))
    if draw.random() < 0.5:
        vectors = arrays["cls"]
        return f"embeddings {name}", name != "right", lambda: _scored(vectors, vectors[rows] + 0.1)
    references = {image: texts[1:] for image, texts in zip(NAMES, captions, strict=True)}
    written = {image: captions[row][0] for image, row in zip(NAMES, rows, strict=True)}
    score = lambda: vitcapr.evaluate(written, references, metrics=["diversity"], samples=0)  # noqa: E731
    return f"captions {name}", name != "right", lambda: [score().content]


def _scored(images: Array, texts: Array) -> list[str]:
    return [vitcapr.evaluate_retrieval(images, texts, samples=0).content]


JOINTS = (order, grid, partitions, ids, duplicates, results)


def join(
    joint: Callable[[Path, Path, random.Random], tuple[str, bool, Said]], box: Path, draw: random.Random, tally: Tally
) -> None:
    """One input of a joint: a wrong one stops, or its rows are named; a right one is taken."""
    shutil.rmtree(box, ignore_errors=True)
    box.mkdir(parents=True)
    name, wrong, read = joint(box, box.parent / f"content-{box.name}", draw)
    problem, kind = None, f"inputs, foreign {joint.__name__}"
    try:
        said = read()
    except UserError as error:
        stopped = True
        problem = None if wrong and "\n" not in str(error) else f"a right input stops: {error}"
    else:
        stopped = any("first" in line and "rows" in line for line in said)
        problem = f"not noticed: {said}" if wrong and not stopped else None
    tally.add(f"{kind}, {'wrong' if wrong else 'right'}: {'stopped or named' if stopped else 'taken'}", name, problem)
    shutil.rmtree(box)
