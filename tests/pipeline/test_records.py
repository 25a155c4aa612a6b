"""Run records: a damaged one is one line where it is asked for; a file that its job did not write so is refused."""

import copy
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from tests.run_records import RECORD
from vitcapr.errors import UserError
from vitcapr.files import sha256_file
from vitcapr.pipeline.run_records import (
    FileFacts,
    check_as_written,
    check_same_origin,
    find_writers,
    read_run,
    read_runs,
)

FILE = Path("results/a/captions/captions.json")


@pytest.fixture(autouse=True)
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file and the record of the job that wrote it."""
    monkeypatch.chdir(tmp_path)
    FILE.parent.mkdir(parents=True)
    FILE.write_text("as written")
    return record("decode/beam", "2026-01-02")


def record(name: str, started: str, path: Path = FILE, experiment: str = "a", **facts: Any) -> Path:
    """The record of a job that wrote ``path`` as it is now."""
    target = Path("results", experiment, "runs", f"{name}.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    output = {"option": "captions", "sha256": sha256_file(path), "size": path.stat().st_size}
    content = {**RECORD, "outputs": {path.as_posix(): output}, "made": {**RECORD["made"], "started": started}}
    target.write_text(json.dumps({**content, **facts}))
    return target


def check(path: Path = FILE) -> None:
    inputs = {path.as_posix(): FileFacts(option="source", sha256=sha256_file(path), size=1)}
    check_as_written(inputs, find_writers(inputs))


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        ((), []),
        (("outputs",), None),
        (("outputs",), []),
        (("outputs", FILE.as_posix(), "sha256"), None),
        (("made", "started"), None),
        (("made", "seconds"), "long"),
        (("result_cache",), {"key": "k"}),
        (("code",), "0123"),
    ],
)
def test_a_damaged_record_is_one_line_and_stops_no_job(written: Path, keys: tuple[str, ...], value: Any) -> None:
    content: Any = copy.deepcopy(json.loads(written.read_text()))
    place = content
    for key in keys[:-1]:
        place = place[key]
    if not keys:
        content = value
    elif value is None:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    written.write_text(json.dumps(content))
    with pytest.raises(UserError, match="delete"):
        read_run(written)
    FILE.write_text("by hand")
    check()


def test_a_changed_file_is_refused_with_two_ways_out(written: Path) -> None:
    check()
    FILE.write_text("by hand")
    with pytest.raises(UserError, match="the file is not as decode/beam wrote it") as caught:
        check()
    assert str(caught.value.where) == FILE.as_posix()
    assert caught.value.remedy == (
        f"snakemake --forcerun {FILE} makes it again; to keep your change, delete results/a/runs/decode/beam.json"
    )
    written.unlink()
    check()


@pytest.mark.parametrize("started", ["2026-01-01", "2026-01-03"])
def test_the_newest_record_counts(started: str) -> None:
    """The rule of the job has changed its name, and the record of the old one is still there."""
    first = FILE.read_text()
    FILE.write_text("by another rule")
    record("describe/beam", started)
    FILE.write_text(first if started < "2026-01-02" else "by another rule")
    check()
    FILE.write_text("by another rule" if started < "2026-01-02" else first)
    with pytest.raises(UserError, match="not as"):
        check()


def test_records_of_other_paths_and_other_formats_say_nothing() -> None:
    """Those of a copied experiment name the files of the first one."""
    other = Path("results/b/captions/captions.json")
    other.parent.mkdir(parents=True)
    other.write_text("another")
    record("decode/beam", "2026-01-02", experiment="b")
    check(other)
    Path("results/a/runs/decode/old.json").write_text('{"format": "vitcapr-run-1"}')
    Path("results/a/runs/decode/cut.json").write_text('{"format"')
    check()
    record("decode/beam", "2026-01-02", other, experiment="b")
    other.write_text("by hand")
    with pytest.raises(UserError, match=r"results/b/runs/decode/beam\.json"):
        check(other)
    Path("photos.zip").write_text("a user's own")
    check(Path("photos.zip"))


def test_other_records_are_left_out_with_one_line(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = written.with_name("old.json")
    old.write_text('{"format": "vitcapr-run-2"}')
    assert [run.name for run in read_runs(Path("results/a"))] == ["decode/beam"]
    line = "results/a/runs: 1 records are left out: not the record of a run of format vitcapr-run-5: its format is "
    assert capsys.readouterr().err.startswith(f"{line}vitcapr-run-2 (results/a/runs/decode/old.json)")


def facts(option: str, digest: str = "1") -> FileFacts:
    return {"option": option, "sha256": digest * 64, "size": 1}


@pytest.mark.parametrize(
    ("option", "beside", "refused"),
    [
        *(
            (option, "manifest", True)
            for option in ("tokens", "captions", "embeddings", "attention", "ranks", "before")
        ),
        *((option, "vocabulary", True) for option in ("tokens", "captions", "captioner", "word_vectors")),
        ("embeddings", "features", True),
        # A model may serve another data set, and captions may be scored with features that did not make them.
        ("captioner", "manifest", False),
        ("retriever", "manifest", False),
        ("captions", "features", False),
    ],
)
def test_what_a_stage_reads_was_made_with_the_same(option: str, beside: str, refused: bool) -> None:
    record("decode/beam", "2026-01-03", inputs={f"results/a/{beside}": facts(beside)})
    same, another = ({FILE.as_posix(): facts(option), "b/file": facts(beside, digest)} for digest in "12")
    check_same_origin(same, find_writers(same))
    with pytest.raises(UserError, match="made with another") if refused else nullcontext():
        check_same_origin(another, find_writers(another))


def test_pieces_of_a_language_model_stand_beside_words() -> None:
    """A retriever that reranks captions of pieces reads the words."""
    record("decode/beam", "2026-01-03", inputs={"results/a/text/pieces/lm/vocabulary.json": facts("vocabulary")})
    read = {FILE.as_posix(): facts("candidates"), "results/a/text/vocabulary.json": facts("vocabulary", "2")}
    check_same_origin(read, find_writers(read))
