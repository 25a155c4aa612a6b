"""A damaged run record is one line where it is asked for, and says nothing where it is not."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from vitcapr.errors import UserError
from vitcapr.pipeline.records import FORMAT, check_as_written, read_run

OUTPUT = "results/a/text/vocabulary.json"
RECORD: dict[str, Any] = {
    "format": FORMAT,
    "stage": "vocabulary",
    "command": "python -m vitcapr stage vocabulary",
    "code": {"vitcapr.text.vocabulary": "0123"},
    "settings": {},
    "values": {},
    "inputs": {},
    "outputs": {OUTPUT: {"option": "vocabulary", "sha256": "0" * 64, "size": 3}},
    "made": {
        "user": "u",
        "host": "h",
        "platform": "Linux",
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 1.5,
        "cpu_seconds": 1.0,
        "peak_memory_mb": 10,
        "energy": {"joules": {}, "absent": {}},
        "python": "3.11",
        "libraries": {},
    },
    "result_cache": None,
}


def write(folder: Path, record: Any) -> Path:
    path = folder / "results/a/runs/vocabulary.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record))
    return path


def damaged(*keys: str, value: Any = ...) -> dict[str, Any]:
    """The record without a key, or with another value there."""
    record = copy.deepcopy(RECORD)
    place = record
    for key in keys[:-1]:
        place = place[key]
    if value is ...:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return record


def test_a_whole_record_is_read(tmp_path: Path) -> None:
    assert read_run(write(tmp_path, RECORD)).name == "vocabulary"


@pytest.mark.parametrize(
    "record",
    [
        [],
        damaged("outputs"),
        damaged("outputs", value=[]),
        damaged("outputs", OUTPUT, "sha256"),
        damaged("outputs", OUTPUT, value="a file"),
        damaged("inputs", value=None),
        damaged("made"),
        damaged("made", "started"),
        damaged("made", "seconds", value="long"),
        damaged("made", "energy", value={}),
        damaged("result_cache", value={"key": "k"}),
        damaged("code", value="0123"),
    ],
)
def test_a_damaged_record_is_one_line_and_stops_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: Any
) -> None:
    path = write(tmp_path, record)
    with pytest.raises(UserError, match="delete"):
        read_run(path)
    monkeypatch.chdir(tmp_path)
    check_as_written({OUTPUT: {"sha256": "1" * 64}})
