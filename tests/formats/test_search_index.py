"""The kept embeddings of a retriever: whole or not there, and gone with the weights that made them."""

from pathlib import Path

import numpy as np

from vitcapr.formats.embeddings import CARD, IndexSources, read_part, write_part

VECTORS = np.eye(3, dtype=np.float32)
COLUMNS = {"image_id": ["a", "b", "c"], "split": ["train", "test", "test"]}
OLD, NEW = "0" * 64, "1" * 64
SOURCES = IndexSources(OLD, ("f", "g"), "m")


def test_what_was_written(tmp_path: Path) -> None:
    write_part(tmp_path, SOURCES, "images", VECTORS, COLUMNS)
    part = read_part(SOURCES.folder(tmp_path), "images")
    assert part is not None
    assert part.vectors.tolist() == VECTORS.tolist()
    assert part.rows([2, 0]) == [{"image_id": "c", "split": "test"}, {"image_id": "a", "split": "train"}]
    assert part.column("split").tolist() == COLUMNS["split"]
    assert read_part(SOURCES.folder(tmp_path), "captions") is None


def test_other_sources_have_another_folder(tmp_path: Path) -> None:
    others = [
        IndexSources(NEW, ("f", "g"), "m"),
        IndexSources(OLD, ("g", "f"), "m"),
        IndexSources(OLD, ("f", "g"), "n"),
    ]
    assert len({sources.folder(tmp_path) for sources in [SOURCES, *others]}) == 4


def test_an_index_of_earlier_weights_is_deleted(tmp_path: Path) -> None:
    same_weights, damaged = IndexSources(OLD, ("h",), "m"), tmp_path / "search" / "0" / CARD
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{")
    write_part(tmp_path, SOURCES, "images", VECTORS, COLUMNS)
    write_part(tmp_path, same_weights, "images", VECTORS, COLUMNS)
    assert not damaged.parent.exists()
    assert read_part(SOURCES.folder(tmp_path), "images") is not None
    newer = IndexSources(NEW, ("f", "g"), "m")
    write_part(tmp_path, newer, "images", VECTORS, COLUMNS)
    assert [path.parent for path in tmp_path.glob(f"search/*/{CARD}")] == [newer.folder(tmp_path)]


def test_a_damaged_part_is_not_there(tmp_path: Path) -> None:
    folder = SOURCES.folder(tmp_path)
    for name, content in (("images.npy", b"\x93NUMPY"), ("images.parquet", b"PAR1")):
        write_part(tmp_path, SOURCES, "images", VECTORS, COLUMNS)
        (folder / name).write_bytes(content)
        assert read_part(folder, "images") is None
    write_part(tmp_path, SOURCES, "images", VECTORS, COLUMNS)
    np.save(folder / "images.npy", VECTORS[:2])
    assert read_part(folder, "images") is None
