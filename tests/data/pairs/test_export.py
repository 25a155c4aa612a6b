"""What is written reads back as the same pairs, with the pictures in the table or beside it."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.checkpoints import printed_by
from vitcapr.commands import pairs
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.pairs import read_pair_table
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.data_pairs import data_pairs

ROWS = [
    ("Wow, a dog  runs !", "0.png", "en", "animal", ""),
    ("《第 一》 只狗。", "0.png", "zh", "animal", ""),
    ('a "quoted", text;\tand a tab', "1.png", "en", "person", "test"),
    ("oh 一 个 人", "1.png", "zh", "person", "test"),
    ("a red circle", "2.png", "en", "", ""),
    ("a street", "3.png", "en", "", ""),
]


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    for number in range(4):
        Image.fromarray(np.full((4, 5, 3), number, np.uint8)).save(tmp_path / f"{number}.png")
    table = pd.DataFrame(ROWS, columns=["text", "image", "language", "category", "split"])
    table.to_csv(tmp_path / "pairs.csv", index=False)
    return read_in(tmp_path / "first", tmp_path / "pairs.csv", "path")


def read_in(folder: Path, table: Path, encoding: str, **more: Any) -> Path:
    values = {"source": "table", "table": str(table), "encoding": encoding, "pairs": None, "test_images": 0, **more}
    run_stage(data_pairs, settings=json.dumps({"pairs": values}), folder=folder)
    return folder / "manifest.json"


def content(manifest: Path) -> tuple[list[tuple[Any, ...]], list[str]]:
    """Of each caption all that counts, its picture's digest among it."""
    data = read_manifest(manifest)
    beside = read_pair_table(manifest.parent / "pairs.parquet", data.captions["caption_id"].tolist())
    digest = dict(zip(data.images["image_id"], data.images["sha256"], strict=True))
    table = data.captions.assign(
        raw=beside["raw"], category=beside["category"], test=data.captions["split"] == "test"
    ).assign(picture=data.captions["image_id"].map(digest))
    columns = ["picture", "text", "raw", "language", "category", "test"]
    return list(table[columns].itertuples(index=False, name=None)), data.images["sha256"].tolist()


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_pictures_in_base64_read_back_identically(manifest: Path, tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"out{suffix}"
    printed_by(pairs.app, "export", "--base64", "--manifest", manifest, "-o", output)
    for number in range(4):
        (tmp_path / f"{number}.png").unlink()
    again = read_in(tmp_path / "second", output, "base64")
    assert content(again) == content(manifest)
    assert len(content(again)[0]) == len(ROWS)


def test_paths_read_back_from_the_same_pictures(manifest: Path, tmp_path: Path) -> None:
    output = tmp_path / "paths" / "out.jsonl"
    printed_by(pairs.app, "export", "--manifest", manifest, "-o", output)
    assert json.loads(output.read_text(encoding="utf-8").splitlines()[0]) == {
        "text": "Wow, a dog runs !",
        "image": "0.png",
        "language": "en",
        "category": "animal",
        "split": read_manifest(manifest).images["split"].iloc[0],
    }
    again = read_in(tmp_path / "second", output, "path", images=str(tmp_path))
    assert content(again) == content(manifest)
    # By path the pictures keep their ids, and so the split is the same throughout.
    assert read_manifest(again).images["split"].tolist() == read_manifest(manifest).images["split"].tolist()


def test_what_cannot_be_written_is_one_line(manifest: Path, tmp_path: Path) -> None:
    export = partial(printed_by, pairs.app, "export", "--manifest", manifest, "--base64", "-o")
    with pytest.raises(UserError, match="unknown kind of table"):
        export(tmp_path / "out.xlsx")
    (tmp_path / "2.png").unlink()
    with pytest.raises(UserError, match=r"cannot read 2\.png"):
        export(tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
