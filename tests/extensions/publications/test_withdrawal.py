"""After a withdrawal, the next run and ``gc``, no file holds the image, its vector, its id or its captions."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from tests.extensions.publications.conftest import CONFIG, DATA, VIT, run_all
from vitcapr.commands import gc
from vitcapr.data.collect import ListedCaption, ListedImage, Listing
from vitcapr.data.withdrawn import read_withdrawn, without_images
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import read_config
from vitcapr.extensions.publications.commands import withdraw
from vitcapr.extensions.publications.descent import decoded, trace
from vitcapr.extensions.publications.store_rows import Items, erase_rows
from vitcapr.files import DigestedFile
from vitcapr.formats.manifest import read_manifest
from vitcapr.store.known_rows import KnownRows
from vitcapr.store.layout import ArrayLayout
from vitcapr.store.reader import open_features
from vitcapr.store.writer import StoreWriter

IMAGE = "scene-0000003"


@pytest.fixture
def copy(study: Path, tmp_path: Path, monkeypatch: Any) -> Path:
    """Results in a copy of the study, whose configuration names a list of withdrawn images that does not exist yet."""
    shutil.copytree(study, tmp_path / "study")
    monkeypatch.chdir(tmp_path / "study")
    own = {**CONFIG, "data": {**CONFIG["data"], "withdrawn": "withdrawn.csv"}}
    Path("config.yaml").write_text(yaml.safe_dump(own), encoding="utf-8")
    return Path("results")


def test_no_file_holds_a_withdrawn_image(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = read_manifest(DATA)
    row = int(np.flatnonzero(data.images["image_id"] == IMAGE)[0])
    with open_features(VIT) as store:
        vectors = [np.array(store[name][row]).tobytes() for name in ("cls", "patches")]
        other = np.array(store["cls"][row + 1]).tobytes()
    picture = (data.image_root / data.images["path"][row]).read_bytes()
    words = data.captions["text"][data.captions["image_row"] == row].tolist()
    withdraw.main([IMAGE], copy, yes=True)
    said = capsys.readouterr().out
    assert "features.zarr/cls/c/0/0: bytes 72 to 96" in said  # 12 numbers of 2 bytes, row 3.
    assert "trained with it" in said
    assert "train_captioner/a" in said
    assert read_withdrawn("withdrawn.csv").keys() == {IMAGE}
    assert not any(vector in part for vector in vectors for part in contents(copy / "stores"))
    assert any(other in part for part in contents(copy / "stores"))
    run_all(read_config(Path("config.yaml")))
    for unused in gc.unused(copy, {}):
        gc.delete(unused.paths, copy)
    kept = set(read_manifest(DATA).captions["text"])
    texts = [text.encode() for text in words if text not in kept]
    assert len(read_manifest(DATA).images) == len(data.images) - 1
    assert texts
    for secret in (IMAGE.encode(), picture, *vectors, *texts):
        assert not [path for path in copy.rglob("*") if path.is_file() and any(secret in one for one in decoded(path))]
    with pytest.raises(UserError, match=f"no data set here has the image '{IMAGE}', and no file has its id"):
        list(trace(IMAGE, copy))


def contents(folder: Path) -> Iterator[bytes]:
    return (path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_nothing_changes_without_yes_or_without_a_list(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(contents(copy))
    withdraw.main([IMAGE], copy)
    assert "row 3" in capsys.readouterr().out
    Path("config.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    with pytest.raises(UserError, match=r"data.withdrawn is not set \(results/tiny\)"):
        withdraw.main([IMAGE], copy, yes=True)
    assert sorted(contents(copy)) == before
    assert not Path("withdrawn.csv").exists()


def test_a_listing_without_an_image_names_it_nowhere() -> None:
    images = [ListedImage(name, f"{name}.png", "train") for name in "abc"]
    captions = [ListedCaption(f"{name}#0", name, f"about {name}") for name in "cbax"]
    listing = without_images(Listing.from_records(images, captions, [("b#0", "odd"), ("d", "odd")]), {"b": ""})
    assert listing.images["image_id"].tolist() == ["a", "c"]
    pd.testing.assert_series_equal(
        listing.captions["image_row"], pd.Series([1, 0, -1], name="image_row"), check_dtype=False
    )
    assert listing.rejected == [("d", "odd")]


def test_linked_chunks_are_erased_and_other_rows_still_copied(tmp_path: Path) -> None:
    digests = np.arange(5 * 32, dtype=np.uint8).reshape(5, 32)
    layouts = {"cls": ArrayLayout.for_rows("image", (5, 2), 2, "float16")}
    stores = [StoreWriter(tmp_path / name, layouts) for name in ("a", "b")]
    for store in stores:
        store.begin({"code": "made", "fingerprint": "0" * 64})
        np.save(store.folder / "rows.npy", digests)
    for chunk in range(3):
        stores[0].write(chunk, {"cls": np.full((2, 2), chunk + 1, np.float16)})
        path = stores[0].group / f"cls/c/{chunk}/0"
        file = DigestedFile(path, 8, (stores[0].checksums(chunk) or {})["cls"])
        assert stores[1].link(chunk, {"cls": file}, {"a": [[2 * chunk, 2 * chunk + 2]]})
    items = Items({"known by its digest": digests[3].tobytes().hex()}, {})
    gone = [line for store in stores for line in erase_rows(store.folder, items)]
    assert gone == [f"{store.group / 'cls/c/1/0'}: bytes 4 to 8" for store in stores]
    for store in stores:
        assert np.fromfile(store.group / "cls/c/1/0", np.float16).tolist() == [2, 2, 0, 0]
    known = KnownRows.find(tmp_path, {"code": "made"}, digests, 2, 0, tmp_path / "new", layouts, print)
    assert (known.source < 0).tolist() == [False, False, False, True, False]
    assert known.without_damaged(range(3), pytest.fail).source.tolist() == known.source.tolist()
    assert [line for store in stores for line in erase_rows(store.folder, items)] == []
