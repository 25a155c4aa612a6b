"""The time and memory that ``vitcapr config check`` expects, by records that are written by hand."""

import copy
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints import make_dataset
from tests.run_records import RECORD
from vitcapr.commands.forecast import FIRST_RUN, Cost, Step, cost, describe, forecast, read_recorded
from vitcapr.files import sha256_file, write_json

SIZES = Counter(train=10, validation=4, test=6)
NONE: frozenset[str] = frozenset()
DECODING = {"decoding": {"beam_size": 2}}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def record(name: str, stage: str, seconds: float, settings: Any = None, split: str = "", **changes: Any) -> None:
    """A job of the experiment a, whose data set has 5 images for training, 1 for validation and 2 for testing."""
    data = Path("results/a/data")
    if not data.exists():
        make_dataset(data, 8)
    content = copy.deepcopy(RECORD) | {"stage": stage, "settings": settings or {}, "code": {"torch": "2"}}
    manifest = {"option": "manifest", "sha256": sha256_file(data / "manifest.json"), "size": 1}
    content["inputs"] = {"results/a/data/manifest.json": manifest}
    content["outputs"] = {f"results/a/out/{name}": {"option": "x", "sha256": "0", "size": 1}}
    content["values"] = {"split": split} if split else {}
    content["made"] |= {"seconds": seconds, "host": socket.gethostname(), "peak_memory_mb": 700} | changes
    write_json(Path(f"results/a/runs/{name}.json"), content)


def step(stage: str, settings: Any = None, split: str = "", models: frozenset[str] = NONE) -> Step:
    return Step(stage, stage, settings or {}, {"split": split} if split else {}, models)


def seconds(wanted: Step) -> float | None:
    found = cost(wanted, SIZES, read_recorded(Path("results")))
    return None if found is None else found.seconds


def test_probe() -> None:
    record("decode/a", "decode", 25, DECODING, "test")
    print(read_recorded(Path("results")))
