"""Every benchmark that a page quotes still runs: at a tiny size, and its report is well formed."""

import json
import os
import re
import runpy
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import experiments, rehearsal, results
from benchmarks.inputs import VIT_TINY, render, render_jpegs, write_vit
from tests.extensions.explorer.experiment import write_experiment
from vitcapr.data.coco import list_coco, list_karpathy
from vitcapr.files import sha256_file
from vitcapr.formats.manifest import read_manifest

ROOT = Path(__file__).parents[1]
SMALL_STORE = ("--images", "8", "--patches", "4", "--channels", "8", "--chunk", "4", "--batch", "4", "--turns", "1")
ARGUMENTS = {
    "audit": ("audit", "500"),
    "loader": SMALL_STORE,
    "retrieval": ("--images", "50", "--turns", "1"),
    "training": ("--batches", "1", "--batch", "2", "--turns", "1"),
}
SLOW = {
    "blip2_cost": (),
    "decoding": ("--images", "2"),
    "extraction": (
        "--manifest",
        "{manifest}",
        "--backbone",
        "{vit}",
        *("--images", "4", "--batch", "2", "--turns", "1"),
    ),
    "language_model": ("--images", "1"),
    "scale": ("--sizes", "200x1", "--dag", "1x1"),
}
NEEDS_MORE = {
    "explorer": "tested below",
    "joints": "needs Flickr8k and two checkpoints; tests/test_joints.py has its verdicts",
    "rehearsal": "tested below",
    "scale_peers": "needs the packages of make bench-peers",
}


def printed(
    name: str, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "arguments"),
    [*ARGUMENTS.items(), *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW.items())],
)
def test_a_benchmark_at_a_tiny_size(
    name: str,
    arguments: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {}
    if name == "extraction":
        places = {"manifest": render(tmp_path / "data", 40, 56), "vit": write_vit(tmp_path / "vit", VIT_TINY)}
    report = printed(name, tuple(each.format(**places) for each in arguments), monkeypatch, capsys)
    if name == "scale":
        assert "failed" not in report
        assert "| dry run: 1x1 tasks x models |" in report
    else:
        assert json.loads(report)


def test_the_rehearsal_has_the_layout_of_coco(tmp_path: Path) -> None:
    rehearsal.write(tmp_path, 4000, 1)
    files = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.jpg")]
    split_of = {tmp_path / "annotations" / f"captions_{split}2014.json": split for split in ("train", "val")}
    karpathy, by_year = list_karpathy(files, tmp_path / "dataset_coco.json"), list_coco(files, split_of)
    assert Counter(karpathy.images["split"]) == {"train": 28, "validation": 1, "test": 1}
    assert Counter(by_year.images["split"]) == {"train": 20, "val": 10}
    for listing in (karpathy, by_year):
        assert listing.images["path"].notna().all()
        assert len(listing.captions) == 150
        assert not listing.rejected


@pytest.mark.slow
def test_the_photographs_of_the_bundle_can_be_moved(tmp_path: Path) -> None:
    render_jpegs(tmp_path / "here", 40, 56)
    (tmp_path / "here").rename(tmp_path / "there")
    data = read_manifest(tmp_path / "there" / "manifest.json")
    assert len(data.images) == 40
    assert len(data.captions) > 40
    for path, digest in zip(data.images["path"], data.images["sha256"], strict=True):
        assert sha256_file(data.image_root / path) == digest


def test_the_explorer_of_more_images_than_the_experiment_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six images become eight, without a browser: their paths, which a manifest names once, are links."""
    results = write_experiment(tmp_path / "toy")
    monkeypatch.setenv("PATH", "")
    report = json.loads(printed("explorer", (str(results), "--images", "8"), monkeypatch, capsys))
    assert (report["images"], report["systems"], report["milliseconds"]) == (8, 3, None)
    assert report["MB"]["all"] > 0


@pytest.mark.browser
@pytest.mark.usefixtures("driver")
def test_the_explorer_in_a_browser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = write_experiment(tmp_path / "toy")
    monkeypatch.setenv("PATH", os.environ["MACHINE_PATH"])
    report = json.loads(printed("explorer", (str(results), "--images", "8"), monkeypatch, capsys))
    assert set(report["milliseconds"]) == {"ready", "filter by a word", "sort", "open an image", "map"}


def test_every_benchmark_that_a_page_quotes_is_tested() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    quoted = {name for page in pages for name in re.findall(r"-m benchmarks\.(\w+)", page.read_text(encoding="utf-8"))}
    assert quoted
    assert quoted <= {*ARGUMENTS, *SLOW, *NEEDS_MORE}


def test_the_pages_have_the_figures_of_the_file() -> None:
    """Written by ``make pages``. A table that no page shows would never be measured again."""
    tables, shown = results.read(), set()
    for name in results.PAGES:
        page = (ROOT / name).read_text(encoding="utf-8")
        assert results.fill(page, tables) == page, f"{name}: run make pages"
        shown |= set(re.findall(r"<!-- results: ([^/\n]+?)(?: /| -->)", page))
    assert shown == tables.keys()
    source = {"columns", "rows", "command", "commit", "date", "machine"}
    assert all(table.keys() - {"experiment", "fingerprint", "note"} == source for table in tables.values())


def test_tables_of_experiments_are_of_todays_code_or_say_why_not() -> None:
    """Run the experiment again, or write into its ``note`` what has changed since, and why the numbers stand."""
    made = {name: table for name, table in results.read().items() if "experiment" in table and "note" not in table}
    today = {each: experiments.fingerprint(each) for each in {table["experiment"] for table in made.values()}}
    for name, table in made.items():
        assert table["fingerprint"] == today[table["experiment"]], f"{name}: {experiments.__doc__}"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_a_measured_table_beside_those_of_the_file_names_its_commit(page: Path) -> None:
    """A table with four decimals or more is of measurements, unless it is listed here; its paragraphs date it."""
    others = {"files": "sizes of checkpoints", "scale": "computed, not measured"}
    text = re.sub(r"<!-- (results|recipe|map).*?<!-- end of", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    blocks = ["", *text.split("\n\n"), ""]
    for before, block, after in zip(blocks, blocks[1:], blocks[2:], strict=False):
        if block.startswith("|") and len(re.findall(r"\d\.\d", block)) >= 4 and page.stem not in others:
            assert re.search(r"commit [0-9a-f]{8}, 20\d\d-\d\d-\d\d", before + after), block.splitlines()[0]


def test_the_scores_of_one_seed_have_an_interval_and_those_of_several_a_deviation(tmp_path: Path) -> None:
    for seed, value in enumerate((0.5, 0.7)):
        (tmp_path / str(seed)).mkdir()
        text = "split,model,decoding,metric,value,low,high\n"
        text += f"test,m,beam,cider,{value},{value - 0.1},{value + 0.2}\ntest,m,beam,vocabulary_used,{100 * value},,\n"
        (tmp_path / str(seed) / "summary.csv").write_text(text)
    metrics = {"CIDEr": "cider", "words used": "vocabulary_used"}
    one, both = (
        experiments.rows({"row": "m/beam"}, metrics, [tmp_path / name for name in names]) for names in ("0", "01")
    )
    assert one == {"row": ["50.0 (40.0–70.0)", "50"]}
    assert both == {"row": ["60.0 ± 14.1", "60 ± 14"]}


def test_the_page_of_speed_has_no_times_but_those_of_the_file() -> None:
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    prose = re.sub(r"<!-- results.*?<!-- end of results -->|`[^`]*`", "", page, flags=re.DOTALL)
    assert not re.findall(r"\d[\d.]* (?:CPU )?(?:s|ms|us|seconds|milliseconds|microseconds|images a second)\b", prose)


def test_a_page_is_filled_between_the_comments() -> None:
    source = {"command": "make bench", "commit": "0a1b", "date": "2026-01-02", "machine": "a laptop"}
    tables = {"a": {"columns": ["", "ms"], "rows": {"one": [1234.5], "two": [None]}, **source}}
    page = "x <!-- results: a / one / ms --><!-- end of results -->\n<!-- results: a -->\nold<!-- end of results -->\n"
    assert results.fill(page, tables) == (
        "x <!-- results: a / one / ms -->1,234.5<!-- end of results -->\n<!-- results: a -->\n"
        "|  | ms |\n| --- | ---: |\n| one | 1,234.5 |\n| two |  |\n\n"
        "*`make bench`, commit 0a1b, 2026-01-02: a laptop.*\n<!-- end of results -->\n"
    )
    assert results.fill(results.fill(page, tables), tables) == results.fill(page, tables)


def test_what_is_written_stays_beside_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FILE", tmp_path / "results.json")
    monkeypatch.setattr(results, "commit", lambda: "0a1b2c3d")
    results.FILE.write_text('{"old": {"rows": {}}}')
    results.write({"new": {"command": "make bench", "columns": ["", "±"], "rows": {"one": [0.5, "at most 2"]}}})
    tables = results.read()
    assert tables["old"] == {"rows": {}}
    assert tables["new"]["rows"] == {"one": [0.5, "at most 2"]}
    assert re.fullmatch(
        r"0a1b2c3d \d{4}-\d\d-\d\d .*\d cores, load \d+",
        " ".join(tables["new"][key] for key in ("commit", "date", "machine")),
    )


def test_what_became_slower_by_more_than_a_tenth() -> None:
    before = {
        "speed": [1.0, "at least 0.9"],
        "steady": [1.0, ""],
        "time": [2.0, "at most 2"],
        "quick": [2.0, "at most 2"],
    }
    now = {
        "speed": [0.9, ""],
        "steady": [0.92, ""],
        "time": [2.3, "at most 2"],
        "quick": [2.1, "at most 2"],
        "new": [9, ""],
    }
    assert results.slower(now, before) == [
        "slower: speed: 0.9, and 1.0 in results.json",
        "slower: time: 2.3, and 2.0 in results.json",
    ]
