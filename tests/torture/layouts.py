"""Data sets as other programs write them: a layout, a convention of splits, an encoding, one odd thing.

Each is read in this process. Either every picture is in its split with its caption, or rejected by its name; or, where
nobody could tell what the names mean, there is one line of error.
"""

import csv
import hashlib
import io
import json
import random
import shutil
import tarfile
import unicodedata
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.data_sets import encoded
from tests.torture.tally import Tally
from vitcapr.api.steps import run
from vitcapr.errors import UserError

LAYOUTS = ("parquet", "tar", "files", "metadata.csv", "metadata.jsonl", "table", "tables", "coco", "zip")
CONVENTIONS = ("folders", "names", "years", "column", "none", "extra", "two")
ODD = ("nothing", "no file", "no caption", "damaged", "a copy", "notes", "another picture")
SPELLINGS = {"train": ("train", "training"), "validation": ("validation", "val", "dev"), "test": ("test", "eval")}
PARTS = {"train": range(7), "validation": range(7, 9), "test": range(9, 12)}
PICTURES = [encoded(Image.new("RGB", (5 + number, 6), (20 * number, 40, 90)), "PNG") for number in range(13)]


class Form(NamedTuple):
    layout: str
    convention: str
    odd: str
    accents: bool
    marked: bool

    @property
    def is_refused(self) -> bool:
        return self.convention in ("extra", "two")


def draw_form(draw: random.Random) -> Form:
    words = draw.choice(LAYOUTS), draw.choice(CONVENTIONS), draw.choice(ODD)
    return Form(*words, accents=draw.random() < 0.3, marked=draw.random() < 0.3)


def write_form(box: Path, form: Form, draw: random.Random) -> tuple[dict[str, Any], dict[int, tuple[str, bytes]]]:
    """Write a data set; returns the keys of ``data.table``, and the split and the bytes of each picture."""
    truth: dict[int, tuple[str, bytes]] = {}
    files: dict[str, bytes] = {}
    tables: dict[str, list[dict[str, str]]] = {}
    for split, numbers in PARTS.items():
        word, part = draw.choice(SPELLINGS[split]), f"part{numbers[0]}"
        if form.convention not in ("column", "none"):
            part = f"{word}2017" if form.convention == "years" else word
        if split == "train" and form.is_refused:
            part = "extra" if form.convention == "extra" else f"{part}_and_val"
        for number in numbers:
            content = PICTURES[number]
            if number == 3:
                content = {"damaged": content[:40], "a copy": PICTURES[2], "no file": b""}.get(form.odd, content)
            name = f"{part}/test {number:02d}{'é' * form.accents}.png"
            row = {"image": name, "text": "" if number == 3 and form.odd == "no caption" else f"number {number}"}
            if form.convention == "column":
                row["split"] = word
            truth[number] = split, content
            if content:
                files[unicodedata.normalize("NFD", name)] = content
            tables.setdefault(part, []).append(row)
    if form.odd == "notes":
        files["notes.txt"] = b"x"
    elif form.odd == "another picture":
        files[next(iter(files)).replace(".png", ".left.png")] = PICTURES[12]
    given = {"splits": "seeded", "validation": 0.3} if form.convention == "none" else {}
    return {**WRITERS[form.layout](box, form, files, tables), **given}, truth


Files, Rows = dict[str, bytes], dict[str, list[dict[str, str]]]


def as_text(form: Form, text: str) -> bytes:
    return text.encode("utf-8-sig" if form.marked else "utf-8")


def as_csv(form: Form, rows: list[dict[str, str]]) -> bytes:
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return as_text(form, stream.getvalue())


def write_files(root: Path, files: Files) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def shard(form: Form, part: str, ending: str) -> str:
    return f"{part}/00000.{ending}" if form.convention == "folders" else f"mine-{part}-00000.{ending}"


def samples(form: Form, files: Files, tables: Rows) -> Files:
    """Pictures with a text file each, or with JSON that has the split too."""
    texts = {}
    for row in (row for rows in tables.values() for row in rows):
        name = unicodedata.normalize("NFD", row["image"]).removesuffix(".png")
        own = {key: value for key, value in row.items() if key != "image"}
        texts |= (
            {f"{name}.json": json.dumps(own).encode()}
            if "split" in row
            else {f"{name}.txt": as_text(form, row["text"])}
        )
    return files | texts


def write_parquet(box: Path, form: Form, files: Files, tables: Rows) -> dict[str, Any]:
    column = "jpg" if form.marked else "image"
    for part, rows in tables.items():
        for row in rows:
            row[column] = files.get(unicodedata.normalize("NFD", row.pop("image")))  # type: ignore[assignment]
        path = box / "mine" / shard(form, part, "parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), path)
    return {"images": box / "mine", "columns": {"image": column}}


def write_tars(box: Path, form: Form, files: Files, tables: Rows) -> dict[str, Any]:
    every = list(samples(form, files, tables).items())
    random.Random(len(every)).shuffle(every)
    for part in tables:
        path = box / "mine" / shard(form, part, "tar")
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w") as tar:
            for name, content in every:
                if name.startswith(f"{part}/"):
                    member = tarfile.TarInfo(name.partition("/")[2])
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    return {"images": box / "mine"}


def write_samples(box: Path, form: Form, files: Files, tables: Rows) -> dict[str, Any]:
    write_files(box / "mine", samples(form, files, tables))
    return {"images": box / "mine"}


def write_metadata(box: Path, form: Form, files: Files, tables: Rows) -> dict[str, Any]:
    write_files(box / "mine", files)
    for part, rows in tables.items():
        rows = [{**row, "image": row["image"].partition("/")[2]} for row in rows]
        lines = as_text(form, "".join(json.dumps(row) + "\n" for row in rows))
        content = as_csv(form, rows) if form.layout.endswith("csv") else lines
        write_files(box / "mine", {f"{part}/{form.layout}": content})
    return {"images": box / "mine"}


def write_table(box: Path, form: Form, files: Files, tables: Rows) -> dict[str, Any]:
    write_files(box, {"mine.csv": as_csv(form, [row for rows in tables.values() for row in rows])})
    if form.layout == "zip":
        with zipfile.ZipFile(box / "mine.zip", "w") as packed:
            for name, content in files.items():
                packed.writestr(name, content)
        return {"images": box / "mine.zip", "captions": box / "mine.csv"}
    write_files(box / "mine", files)
    return {"images": box / "mine", "captions": box / "mine.csv"}


def write_tables(box: Path, form: Form, files: Files, tables: Rows) -> dict[str, Any]:
    """Several caption files; the names of the folders say nothing."""
    write_files(box / "mine", {f"all/{name.rpartition('/')[2]}": content for name, content in files.items()})
    captions = []
    for part, rows in tables.items():
        rows = [{**row, "image": f"all/{row['image'].partition('/')[2]}"} for row in rows]
        name, content = f"captions_{part}.csv", as_csv(form, rows)
        if form.layout == "coco":
            name = f"captions_{part}.json"
            images = [{**row, "id": row["image"], "file_name": row["image"].partition("/")[2]} for row in rows]
            texts = [{"image_id": row["image"], "caption": row["text"]} for row in rows]
            content = json.dumps({"images": images, "annotations": texts}).encode()
        write_files(box, {name: content})
        captions.append(box / name)
    return {"images": box / "mine", "captions": captions}


WRITERS = {
    "parquet": write_parquet,
    "tar": write_tars,
    "files": write_samples,
    "metadata.csv": write_metadata,
    "metadata.jsonl": write_metadata,
    "table": write_table,
    "zip": write_table,
    "tables": write_tables,
    "coco": write_tables,
}


def find_problem(out: Path, form: Form, truth: dict[int, tuple[str, bytes]]) -> str | None:
    """What of the data set is not as it was written."""
    images, captions = (pd.read_parquet(out / f"{name}.parquet") for name in ("images", "captions"))
    texts = captions.groupby(captions["image_row"])["text"].apply(set)
    place_of = {digest: place for place, digest in enumerate(images["sha256"])}
    rejected = (out / "rejected.csv").read_text(encoding="utf-8")
    for number, (split, content) in truth.items():
        place = place_of.get(hashlib.sha256(content).hexdigest())
        if place is None:
            if number != 3 or not any(name in rejected for name in ("test 03", "/000003")):
                return f"picture {number} has vanished"
        elif form.convention != "none" and images["split"][place] != split:
            return f"picture {number} of {split} is in {images['split'][place]}"
        elif f"number {number}" not in texts[place]:
            return f"picture {number} has the captions {texts[place]}"
    other = {"another picture": ".left.png", "notes": "notes.txt"}.get(form.odd, "")
    is_there = form.layout != "parquet" and (form.layout, form.odd) != ("tar", "notes")
    return f"{other} has vanished" if is_there and other not in rejected else None


def read_layout(box: Path, draw: random.Random, tally: Tally, form: Form | None = None) -> None:
    """One data set of another program."""
    shutil.rmtree(box, ignore_errors=True)
    form = form or draw_form(draw)
    table, truth = write_form(box, form, draw)
    problem = None
    try:
        run("data_photographs", {"table": table}, folder=box / "out")
        problem = "accepted" if form.is_refused else find_problem(box / "out", form, truth)
    except UserError as error:
        if not form.is_refused or "\n" in str(error):
            problem = str(error)
    except Exception as error:
        problem = repr(error)
    tally.add("inputs, layouts", " ".join(map(str, form)), problem)
    shutil.rmtree(box)
