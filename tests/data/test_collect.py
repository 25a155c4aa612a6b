"""Whatever a data set lists, nothing vanishes and nothing moves."""

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vitcapr.data.collect import Checks, ListedCaption, ListedImage, Listing, check, collect
from vitcapr.data.images import ImageSource
from vitcapr.data.readers import leave_out
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.progress import Reporter

IDS = "abcdef"

listings = st.builds(
    Listing.from_records,
    images=st.lists(
        st.tuples(st.sampled_from(IDS), st.sampled_from(["good", "bad", "absent"]), st.sampled_from(["train", "none"])),
        unique_by=lambda image: image[0],
        max_size=6,
    ).map(
        lambda images: [
            ListedImage(name, None if state == "absent" else f"{state}/{name}.png", split)
            for name, state, split in images
        ]
    ),
    captions=st.lists(
        st.builds(
            ListedCaption,
            caption_id=st.integers(0, 15).map(str),
            image_id=st.sampled_from(f"{IDS}z"),
            text=st.sampled_from(["A dog .", " ", "two\r\nlines", "\ud83d"]),
        ),
        max_size=15,
    ),
    rejected=st.lists(st.just(("line 1", "broken")), max_size=1),
)


def run(listing: Listing, folder: Path, limit: int | None = None) -> tuple[Path, Counter[str], list[list[str]]]:
    """Collect a listing; the manifest, the rejected items counted, and the rows of rejected.csv."""
    with ImageSource(folder) as source, Reporter() as reporter:
        path = collect(
            listing,
            source,
            folder / "out",
            dataset="tiny",
            checks=Checks(max_pixels=100, max_rejected=1),
            limit=limit,
            reporter=reporter,
        )
    with (folder / "out" / "rejected.csv").open(newline="") as stream:
        rows = list(csv.reader(stream))[1:]
    return path, Counter(item for item, _ in rows), rows


def usable_images(listing: Listing) -> list[str]:
    """The ids, in order, of good pictures with a caption whose number is new and whose text is words."""
    first = {caption.caption_id: caption for caption in reversed(list(listing.captions.itertuples()))}
    captioned = {caption.image_row for caption in first.values() if caption.text}
    images = listing.images.fillna("").itertuples()
    return [i.image_id for i in images if i.path.startswith("good/") and i.Index in captioned]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    for state in ("good", "bad"):
        (folder / state).mkdir()
    for image_id in IDS:
        Image.new("RGB", (2, 2)).save(folder / "good" / f"{image_id}.png")
        (folder / "bad" / f"{image_id}.png").write_bytes(b"")
    return folder


@settings(max_examples=50)
@given(listing=listings)
def test_every_item_is_kept_in_order_or_rejected_with_a_reason(folder, listing):
    expected = usable_images(listing)
    if not expected:
        with pytest.raises(UserError, match="no image is left"):
            run(listing, folder)
        return
    path, rejected, rows = run(listing, folder)
    manifest = read_manifest(path)

    kept = [*manifest.images["image_id"], *manifest.captions["caption_id"]]
    items = [*listing.images["image_id"], *listing.captions["caption_id"]]
    items += [item for item, _ in listing.rejected]
    assert Counter(kept) + rejected == Counter(items)
    assert all(reason for _, reason in rows)

    assert manifest.images["image_id"].tolist() == expected
    assert set(manifest.images["path"].str.split("/").str[0]) == {"good"}
    assert set(manifest.captions["text"]) <= {"A dog .", "two lines"}
    assert set(manifest.captions["image_id"]) == set(manifest.images["image_id"])


def test_a_name_is_rejected_with_its_own_reason(folder: Path) -> None:
    names = {"../c.png": "not below the folder", "a\\b.png": "with a backslash", "\udcff.png": "not UTF-8"}
    images = [ListedImage(name, path, "none") for name, path in zip("abcd", ["good/a.png", *names], strict=True)]
    listing = Listing.from_records(images, [ListedCaption(f"{name}#0", name, "A dog .") for name in "abcd"])
    with ImageSource(folder) as source, Reporter() as reporter:
        rejected = dict(check(listing, source, Checks(max_rejected=1), reporter).rejected)
    for name, reason in zip("bcd", names.values(), strict=True):
        assert rejected[name].startswith("a name ")
        assert rejected[name].endswith(reason)


def test_a_limit_is_a_total_that_is_spread_over_the_splits(folder: Path) -> None:
    splits = ["train", "train", "train", "none", "test", "validation"]
    images = [ListedImage(name, f"good/{name}.png", split) for name, split in zip(IDS, splits, strict=True)]
    listing = Listing.from_records(images, [ListedCaption(f"{name}#0", name, "A dog .") for name in IDS])
    kept = {limit: "".join(read_manifest(run(listing, folder, limit)[0]).images["image_id"]) for limit in (1, 3, 5, 99)}
    assert kept == {1: "a", 3: "aef", 5: "abdef", 99: "abcdef"}


@pytest.mark.parametrize(("state", "match"), [("absent", "4 of 6 .*: 4 x no such file"), ("bad", "4 x empty file")])
def test_a_loss_of_more_than_a_tenth_stops_the_stage(folder: Path, state: str, match: str) -> None:
    paths = [f"good/{name}.png" if name in "ab" else None if state == "absent" else f"bad/{name}.png" for name in IDS]
    images = [ListedImage(name, path, "train") for name, path in zip(IDS, paths, strict=True)]
    dirty = [*[ListedCaption("a#1", "a", " ")] * 9, ListedCaption("z#0", "z", "No image .")]
    listing = Listing.from_records(images, [*(ListedCaption(f"{name}#0", name, "A dog .") for name in IDS), *dirty])
    with ImageSource(folder) as source, Reporter() as reporter:
        with pytest.raises(UserError, match=rf"{match} .*raise data\.max_rejected, which is 0\.1"):
            check(listing, source, Checks(), reporter)
        assert len(check(listing, source, Checks(max_rejected=0.7), reporter).images) == 2


def test_a_split_that_a_later_stage_needs_has_images(folder: Path, tmp_path: Path) -> None:
    images = [ListedImage("a", "good/a.png", "train"), ListedImage("b", "bad/b.png", "test")]
    listing = Listing.from_records(images, [ListedCaption(f"{name}#0", name, "A dog .") for name in "ab"])
    how: dict[str, Any] = {"dataset": "tiny", "checks": Checks(max_rejected=1), "limit": None}
    with ImageSource(folder) as source, Reporter() as reporter:
        with pytest.raises(UserError, match=r"no image is left in the split 'test', which run.splits needs \(1 train;"):
            collect(listing, source, tmp_path, reporter=reporter, needed_splits={"test": "run.splits"}, **how)
        collect(listing, source, tmp_path, reporter=reporter, needed_splits={"train": "training"}, **how)


def test_the_same_picture_in_two_splits_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = [ListedImage("a", "good/a.png", "none"), ListedImage("b", "good/b.png", "test")]
    listing = Listing.from_records(images, [ListedCaption("1", "a", "A dog ."), ListedCaption("2", "b", "A cat .")])
    with ImageSource(folder) as source, Reporter() as reporter:
        assert len(check(listing, source, Checks(), reporter).images) == 2
        joined = check(listing, source, Checks(), reporter, join_copies=True)
    assert joined.images[["image_id", "split"]].values.tolist() == [["a", "test"]]
    assert joined.captions[["image_row", "text"]].values.tolist() == [[0, "A dog ."], [0, "A cat ."]]
    assert (
        capsys.readouterr().err.count(
            "two splits under two names; the first are good/a.png (none) and good/b.png (test)"
        )
        == 2
    )


def test_marks_in_captions_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["startseq a dog endseq", "Tom &amp; Jerry", "[PAD] a cat", "a <b dog & <", "the start of a race"]
    captions = [ListedCaption(str(number), "a", text) for number, text in enumerate(texts)]
    with ImageSource(folder) as source, Reporter() as reporter:
        checked = check(
            Listing.from_records([ListedImage("a", "good/a.png", "none")], captions), source, Checks(), reporter
        )
    assert checked.captions["text"].tolist() == texts
    assert "3 of 5 captions have marks of a tokenizer or of HTML, " in capsys.readouterr().err


def test_an_audit_leaves_out_training_captions_with_their_reason(folder: Path, tmp_path: Path) -> None:
    audit = tmp_path / "audit.parquet"
    wrong = {"a#0": 0.9, "a#1": 0.1, "b#0": 0.5, "c#0": 0.99}
    pd.DataFrame({"caption_id": [*wrong], "image_id": "", "suspicion": 0.0, "wrong": wrong.values()}).to_parquet(audit)
    images = [ListedImage(name, f"good/{name}.png", "test" if name == "c" else "train") for name in "abcd"]
    captions = [ListedCaption(name, name[0], "A dog .") for name in (*wrong, "d#0")]
    listing = Listing.from_records(images, captions)
    path, _, rows = run(leave_out(listing, audit, 0.5), folder)
    # A held-out caption stays, and so does one that the audit does not know.
    assert read_manifest(path).captions["caption_id"].tolist() == ["a#1", "c#0", "d#0"]
    assert rows == [
        ["a#0", "left out: wrong with a probability of 0.90"],
        ["b", "image without a caption"],
        ["b#0", "left out: wrong with a probability of 0.50"],
    ]
    with pytest.raises(UserError, match=r"none of 4 training captions: their highest probability is 0\.9"):
        leave_out(listing, audit, 0.95)
    pd.DataFrame({"caption_id": ["a#0"], "image_id": ""}).to_parquet(audit)
    with pytest.raises(UserError, match="an audit has the column suspicion"):
        leave_out(listing, audit, 0.5)
