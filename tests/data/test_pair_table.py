"""Rows of every kind of table become the same pairs; what is none is left out with its reason."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vitcapr.data.bilingual_pairs import detect_language, list_table
from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes

ROWS = [
    {"text": "A dog, red.", "image": "./a.jpg", "language": "", "category": "animal", "split": ""},
    {"text": "一只狗", "image": "b.jpg", "language": "", "category": "", "split": "test"},
    {"text": "plain", "image": "gone.jpg", "language": "zh", "category": "", "split": ""},
]
EXPECTED = Listing.from_records(
    [
        ListedImage("a.jpg", "a.jpg", "none"),
        ListedImage("b.jpg", "b.jpg", "test"),
        ListedImage("gone.jpg", None, "none"),
    ],
    [
        ListedCaption("row-1", "a.jpg", "A dog, red.", "en", "animal"),
        ListedCaption("row-2", "b.jpg", "一只狗", "zh"),
        ListedCaption("row-3", "gone.jpg", "plain", "zh"),
    ],
    [],
)


def write(file: Path, rows: list[dict[str, Any]]) -> Path:
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file)
    elif file.suffix == ".jsonl":
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    else:
        pd.DataFrame(rows).to_csv(file, index=False)
    return file


def listed(file: Path, encoded: bool = False) -> tuple[Listing, list[bytes]]:
    """The listing, and the pictures that are unpacked."""
    images, out = file.parent / "images", file.parent / "out"
    images.mkdir(exist_ok=True)
    for name in ("a.jpg", "b.jpg"):
        (images / name).touch()
    listing, root = list_table(file, images=images, encoded=encoded, unpack_to=out)
    unpacked = [path.read_bytes() for path in out.rglob("*") if path.is_file()]
    assert root == (out if encoded or unpacked else images)
    return listing, unpacked


def test_a_row_is_a_pair(tmp_path: Path) -> None:
    listing, unpacked = listed(write(tmp_path / "pairs.csv", ROWS))
    pd.testing.assert_frame_equal(listing.images, EXPECTED.images)
    pd.testing.assert_frame_equal(listing.captions, EXPECTED.captions)
    assert (listing.rejected, unpacked) == ([], [])


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: text,
        lambda text: f"data:image/jpeg;base64,{text}",
        lambda text: "\n".join(text[start : start + 76] for start in range(0, len(text), 76)),
    ],
)
def test_pictures_in_base64(tmp_path: Path, spell: Callable[[str], str]) -> None:
    content = bytes(range(256)) * 1000  # longer than a cell of CSV may be by default
    rows = [{"text": "one", "image": spell(base64.b64encode(content).decode())}, {"text": "two", "image": "%%"}]
    listing, unpacked = listed(write(tmp_path / "pairs.csv", rows), encoded=True)
    assert unpacked == [content]
    (digest,) = listing.images["image_id"]
    assert digest == sha256_bytes(content)
    assert listing.images["path"].tolist() == [f"pictures/{digest[:2]}/{digest}"]
    assert listing.captions["text"].tolist() == ["one"]
    assert listing.rejected == [("pairs.csv row 2", "not Base64")]


def test_bytes_in_parquet_bare_and_in_the_form_of_hugging_face(tmp_path: Path) -> None:
    rows = [{"caption": "one", "image": {"bytes": b"x", "path": None}}, {"caption": "two", "image": {"bytes": b"x"}}]
    listing, unpacked = listed(write(tmp_path / "pairs.parquet", rows))
    assert unpacked == [b"x"]
    assert len(listing.images) == 1
    assert len(listing.captions) == 2


def test_rows_that_are_no_pairs(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "image": "", "language": "en"},
        {"text": "b", "image": "a.jpg", "language": "fr"},
        {"text": True, "image": "a.jpg"},
        *({"text": "c", "image": image} for image in (1.5, [1], {"bytes": [1]}, {"x": 1})),
    ]
    listing, _ = listed(write(tmp_path / "pairs.jsonl", rows))
    assert listing.captions.empty
    assert listing.rejected == [
        ("pairs.jsonl row 1", "no picture"),
        ("pairs.jsonl row 2", "language 'fr' is neither en nor zh"),
        ("pairs.jsonl row 3", "a caption is a text or a list of texts, not True"),
        *((f"pairs.jsonl row {number}", "no picture") for number in (4, 5, 6, 7)),
    ]
    assert len(listed(tmp_path / "pairs.jsonl", encoded=True)[0].rejected) == 7


def test_a_column_has_one_of_its_usual_names(tmp_path: Path) -> None:
    named = [{"caption": row["text"], "file_name": row["image"], **row} for row in ROWS]
    for row in named:
        del row["text"], row["image"]
    listing, _ = listed(write(tmp_path / "pairs.csv", named))
    pd.testing.assert_frame_equal(listing.captions, EXPECTED.captions)
    with pytest.raises(UserError, match="the table has no column 'text' or 'caption'"):
        listed(write(tmp_path / "other.csv", [{"words": "a", "image": "a.jpg"}]))


def test_language_by_script() -> None:
    assert [detect_language(text) for text in ("a dog", "狗", "T恤", "", "ä !")] == ["en", "zh", "zh", "en", "en"]
