"""Hostile data sets: captions, pictures and zips of every kind that a person may name, damaged in one place.

Whatever is accepted has to be in the files: a caption is a text of the source, an image is a picture that is there, and
every picture is either an image of the manifest or in ``rejected.csv`` with its reason.
"""

import codecs
import hashlib
import json
import random
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from tests.data_sets import coco_captions, encoded
from tests.torture.hostile import damage_file, damaged
from tests.torture.runs import attempt
from tests.torture.tally import Tally

PICTURES = [f"{number:012d}.{ending}" for number, ending in enumerate(("jpg", "png", "gif", "bmp", "tif", "webp"), 1)]
FORMATS = {"jpg": "JPEG", "png": "PNG", "gif": "GIF", "bmp": "BMP", "tif": "TIFF", "webp": "WEBP"}
TEXTS = {name: [f"a dog number {index} runs", f"picture {index} again"] for index, name in enumerate(PICTURES)}
SPLITS = ("train", "train", "train", "train", "val", "test")
KINDS = ("flickr8k", "kaggle", "coco", "coco_karpathy", "flickr30k_parquet")
NAMES = ("../../../escape.jpg", "/etc/escape.jpg", "a\\..\\b.jpg", "a//b.jpg", "C:/x.jpg", "\udcff.jpg", "a\nb.jpg", "")


def picture(number: int, ending: str) -> bytes:
    return encoded(Image.new("RGB", (9 + number, 7), (30 * number, 90, 200)), FORMATS[ending])


def tokens() -> str:
    return "".join(f"{name}#{number}\t{text}\n" for name in PICTURES for number, text in enumerate(TEXTS[name]))


def karpathy() -> dict[str, Any]:
    images = []
    for index, name in enumerate(PICTURES):
        sentences = [{"raw": text, "sentid": 10 * index + number} for number, text in enumerate(TEXTS[name])]
        entry = {"filename": name, "split": SPLITS[index], "sentences": sentences}
        images.append({**entry, "filepath": "val2014", "cocoid": index + 1})
    return {"images": images}


def write_data_set(kind: str, folder: Path) -> tuple[list[str], list[Path], list[Path]]:
    """Write a whole data set; returns the stage's arguments, the files of captions and the files of pictures."""
    images, text = folder / "images", folder / "text"
    for place in (images, text):
        place.mkdir(parents=True)
    pictures = [images / name for name in PICTURES]
    for number, path in enumerate(pictures):
        path.write_bytes(picture(number, path.suffix[1:]))
    key, settings, files = kind.partition("_")[0], {"images": "images"}, {}
    if kind == "flickr8k":
        lists = {"train": PICTURES[:4], "dev": PICTURES[4:5], "test": PICTURES[5:]}
        files = {f"Flickr_8k.{split}Images.txt": "".join(f"{name}\n" for name in lists[split]) for split in lists}
        files["Flickr8k.token.txt"] = tokens()
        settings["text"] = "text"
    elif kind == "kaggle":
        lines = "".join(f"{name},{text}\n" for name in PICTURES for text in TEXTS[name])
        key, files = "flickr8k", {"captions.txt": f"image,caption\n{lines}"}
        settings |= {"text": "text/captions.txt", "splits": "random"}
    elif kind == "coco":
        for split, names in (("train", PICTURES[:4]), ("val", PICTURES[4:])):
            listed = {int(name[:12]): name for name in names}
            captions = coco_captions(listed, {image: TEXTS[name] for image, name in listed.items()})
            files[f"captions_{split}2017.json"] = json.dumps(captions)
        settings["annotations"] = [f"text/{name}" for name in files]
    elif kind == "coco_karpathy":
        files, settings["karpathy"] = {"dataset_coco.json": json.dumps(karpathy())}, "text/dataset_coco.json"
    else:
        rows = [
            {"image": {"bytes": path.read_bytes()}, "filename": path.name, "caption": TEXTS[path.name], "split": split}
            for path, split in zip(pictures, SPLITS, strict=True)
        ]
        pq.write_table(pa.Table.from_pylist(rows), text / "test-0.parquet")
        settings["images"] = "text"
    for name, content in files.items():
        (text / name).write_text(content, encoding="utf-8")
    job = {"settings": {key: settings}, "folder": "out"}
    arguments = ["stage", "data_photographs", "--job", json.dumps(job)]
    return arguments, sorted(text.iterdir()), pictures


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(inner)


def texts_of(file: Path) -> set[str]:
    """Every text that a caption may have, spaces joined."""
    if not file.is_file() or file.suffix == ".parquet":
        return {text for texts in TEXTS.values() for text in texts} if file.suffix == ".parquet" else set()
    read = file.read_bytes()
    content = read.decode("utf-16" if read[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8", "replace")
    if file.suffix == ".json":
        found = strings(json.loads(content))
    else:
        lines = re.split(r"\r\n|\r|\n", content)
        found = (part for line in lines for part in (line.partition("\t")[2], line.partition(",")[2]))
    return {" ".join(text.encode("utf-8", "ignore").decode().split()) for text in found}


def wrongly_accepted(folder: Path, captions: list[Path], pictures: list[Path]) -> str | None:
    """What is in the manifest and not in the files, or in neither of manifest and ``rejected.csv``."""
    images = pq.read_table(folder / "out/images.parquet", use_threads=False).to_pylist()
    known = {text for file in captions for text in texts_of(file)}
    for row in pq.read_table(folder / "out/captions.parquet", use_threads=False).to_pylist():
        if row["text"] not in known:
            return f"the caption {row['text'][:80]!r} is nowhere"
    rejected = (folder / "out/rejected.csv").read_text(encoding="utf-8")
    if any(file.suffix == ".parquet" for file in captions):
        return None
    hashes = {row["path"].rpartition("/")[2]: row["sha256"] for row in images}
    for path in pictures:
        stem = str(int(path.stem)) if path.stem.isdigit() else path.stem
        if path.name in hashes:
            if not path.is_file() or hashes[path.name] != hashlib.sha256(path.read_bytes()).hexdigest():
                return f"{path.name} is in the manifest with other bytes"
        elif path.name not in rejected and f"\n{stem}," not in rejected and "coco" not in str(captions[0]):
            return f"{path.name} has vanished"
    return None


def judge(
    folder: Path, arguments: list[str], name: str, tally: Tally, files: tuple[list[Path], list[Path]] | None
) -> None:
    """Run the stage; what it accepts is compared with the files of captions and of pictures, if there are any."""
    run = attempt(folder, arguments)
    problem = run.problem
    if run.code == 0 and problem is None and files is not None:
        try:
            problem = wrongly_accepted(folder, *files)
        except (ValueError, RecursionError) as error:
            problem = f"accepted, and the source cannot be read: {error!r}"
    if problem is None and (outside := list(folder.parent.glob("*escape*"))):
        problem = f"wrote {outside[0]}"
    tally.add("inputs, data sets", name, problem)
    shutil.rmtree(folder)


def read_hostile_data_set(box: Path, new: Any, draw: random.Random, tally: Tally) -> None:
    """One data set with one thing wrong."""
    shutil.rmtree(box, ignore_errors=True)
    kind = draw.choice(KINDS)
    arguments, captions, pictures = write_data_set(kind, box)
    path = draw.choice(captions if draw.random() < 0.6 else pictures)
    what = damage_file(path, new, draw)
    judge(box, arguments, f"{kind} {path.name}: {what}", tally, (captions, pictures))


def read_hostile_zip(box: Path, draw: random.Random, tally: Tally) -> None:
    """The pictures in a zip: odd names, damaged members, a bomb, members twice."""
    shutil.rmtree(box, ignore_errors=True)
    arguments, _, pictures = write_data_set("flickr8k", box)
    file = box / "images.zip"
    odd = draw.choice(NAMES).encode("utf-8", "ignore").decode()
    with zipfile.ZipFile(
        file, "w", draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    ) as zipped:
        for path in pictures:
            zipped.writestr(path.name, path.read_bytes())
        if draw.random() < 0.5:
            zipped.writestr(zipfile.ZipInfo(odd or "x"), b"x" * draw.choice((1, 10**7)))
    if draw.random() < 0.7:
        file.write_bytes(damaged(file.read_bytes(), draw))
    arguments = [word.replace('"images": "images"', '"images": "images.zip"') for word in arguments]
    judge(box, arguments, f"images.zip with {odd!r}", tally, None)
