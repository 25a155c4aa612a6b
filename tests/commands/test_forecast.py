"""The time and memory that ``vitcapr config check`` expects, by records that are written by hand."""

import copy
import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints import make_dataset
from tests.run_records import RECORD
from vitcapr.commands.forecast import (
    FIRST_RUN,
    Cost,
    Step,
    TimeLeft,
    cost,
    describe,
    forecast,
    planned_steps,
    read_recorded,
    run_trials,
)
from vitcapr.commands.init import SNAKEFILE
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.experiment.experiment import Experiment
from vitcapr.experiment.paths import WORKFLOW
from vitcapr.files import sha256_file, write_json

SIZES = Counter(train=10, validation=4, test=6)
NONE: frozenset[str] = frozenset()
DECODING = {"decoding": {"beam_size": 2}}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def record(
    name: str,
    stage: str,
    seconds: float,
    settings: Any = None,
    split: str = "",
    manifest: str | None = "as it is",
    reads: str = "",
    images: int = 8,
    **made: Any,
) -> None:
    """A job of the experiment a, whose data set has 8 images, all for training; or of one with as many images."""
    root = "results/a" if images == 8 else f"results/{images}"
    data = Path(root, "data")
    if not data.exists():
        make_dataset(data, images)
    digest = sha256_file(data / "manifest.json") if manifest == "as it is" else manifest
    inputs = {f"{root}/data/manifest.json": digest, reads: "0"}
    content = copy.deepcopy(RECORD) | {
        "stage": stage,
        "settings": settings or {},
        "values": {"split": split} if split else {},
        "inputs": {path: {"option": "x", "sha256": each, "size": 1} for path, each in inputs.items() if path and each},
        "outputs": {f"{root}/out/{name}": {"option": "x", "sha256": "0", "size": 1}},
    }
    content["made"] |= {"seconds": seconds, "host": socket.gethostname()} | made
    write_json(Path(f"{root}/runs/{name}.json"), content)


def step(stage: str, settings: Any = None, split: str = "", models: frozenset[str] = NONE) -> Step:
    return Step(stage, stage, settings or {}, {"split": split} if split else {}, models)


def seconds(planned: Step) -> float | None:
    expected = cost(planned, SIZES, read_recorded(Path("results")))
    return None if expected is None else expected.seconds


def test_work_is_images_times_epochs_or_beams() -> None:
    phases = {"captioner": {"training": {"phases": [{"epochs": 3}, {"epochs": 2}]}}}
    sampled = {"decoding": {"beam_size": 1, "n_best": 50}}
    shared = step("extract")._replace(values={"tasks": 4})
    assert step("train_captioner", phases).work(SIZES) == 10 * (3 + 2)
    assert step("decode", DECODING, "test").work(SIZES) == 6 * 2
    assert step("decode", sampled, "validation").work(SIZES) == 4 * 50
    assert step("vocabulary").work(SIZES) == 20
    assert shared.work(SIZES) == 20 / 4
    assert step("draw_captions", split="test").work(SIZES) == step("summary").work(None) == 1


@pytest.mark.parametrize(("recorded", "expected"), [(25, 5 + 20 * 5), (4, 2 + 2 * 5)])
def test_the_time_grows_with_the_work_but_not_the_start(recorded: float, expected: float) -> None:
    record("train/a", "train_retriever", recorded, {"epochs": 1})
    assert seconds(step("train_retriever", {"epochs": 4})) == pytest.approx(expected)  # 40 images instead of 8


def test_the_record_with_the_nearest_settings_and_work_counts_and_the_largest_memory() -> None:
    settings = {"epochs": 4, "dropout": 0.1, "batch": 8}
    record("train/like", "train_retriever", 45, {**settings, "dropout": 0.2}, peak_memory_mb=300)  # 32 images
    record("train/small", "train_retriever", 6, {**settings, "epochs": 1}, peak_memory_mb=200)  # 8 images
    record("train/other", "train_retriever", 9, {"epochs": 4, "dropout": 0.3, "batch": 9}, peak_memory_mb=900)
    expected = cost(step("train_retriever", settings), SIZES, read_recorded(Path("results")))
    assert expected is not None
    assert expected == (pytest.approx(5 + 40 * 40 / 32), 900, 1, "a")


def test_two_records_of_the_same_settings_give_the_line_of_time_and_of_memory() -> None:
    record("extract/small", "extract", 99, images=4, peak_memory_mb=500, cpu_seconds=22)
    record("extract/large", "extract", 13, images=8, peak_memory_mb=600, cpu_seconds=26)
    record("extract/other", "extract", 2, {"batch": 2}, images=2)
    expected = cost(step("extract"), SIZES, read_recorded(Path("results")))
    # The larger took half its CPU time: 9 s to start and 0.5 s an image; 400 MB to start and 25 MB an image.
    assert expected == (pytest.approx(9 + 20 / 2), 400 + 20 * 25, 1, "a")
    record("extract/small", "extract", 14, images=4, peak_memory_mb=700, cpu_seconds=28)  # More for less work.
    expected = cost(step("extract"), SIZES, read_recorded(Path("results")))
    assert expected == (pytest.approx(13), 700, 1, "a")


def test_the_trials_are_experiments_on_few_images(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def run(command: list[str], **_: Any) -> None:
        first, override = map(Path, command[-2:])
        ran.append((first, json.loads(override.read_text())))

    monkeypatch.setattr("vitcapr.commands.forecast.subprocess.run", run)
    config = ExperimentConfig.model_validate({"experiment": "mine", "data": {"dataset": "scenes"}})
    run_trials(Experiment(config), 1000, [])
    assert ran == [
        (
            Path("config.yaml"),
            {
                "experiment": f"mine-trial-{images}",
                "data": {"scenes": {"images": images}},
                "features": {"reuse": False},
            },
        )
        for images in (83, 250)
    ]


def test_a_checkpoint_in_a_folder_counts_by_its_digest() -> None:
    record("extract/vit", "extract", 25, {"backbone": {"source": "folder/of/vit"}})
    path = Path("results/a/runs/extract/vit.json")
    write_json(path, json.loads(path.read_text()) | {"files": {"backbone.source": "ab"}})
    (job,) = read_recorded(Path("results"))
    assert job.step.settings == {"backbone": {"source": None}}
    assert "ab" in job.step.models
    assert "folder/of/vit" not in job.step.models


def test_of_extractions_the_slowest_counts() -> None:
    record("extract/whole", "extract", 25)
    record("extract/reused", "extract", 15, started="2026-02-02")
    assert seconds(step("extract")) == pytest.approx(5 + 20 * 20 / 8)


def test_a_decoding_compares_only_with_that_of_a_like_captioner() -> None:
    record("train_captioner/a", "train_captioner", 9, {"captioner": {"architecture": "lstm"}})
    record("decode/a", "decode", 25, DECODING, "test", reads="results/a/out/train_captioner/a")
    assert seconds(step("decode", DECODING, "test", frozenset({"lstm"}))) == pytest.approx(5 + 20 * 12 / 16)
    assert seconds(step("decode", DECODING, "test", frozenset({"transformer"}))) is None


def test_records_of_other_machines_and_of_earlier_data_are_left_out() -> None:
    record("vocabulary/there", "vocabulary", 9, host="elsewhere")
    record("vocabulary/before", "vocabulary", 9, manifest="0")
    assert read_recorded(Path("results")) == []
    record("gone", "no_longer_a_stage", 9)
    record("summary", "summary", 9, manifest=None)
    assert [job.step.stage for job in read_recorded(Path("results"))] == ["summary"]


def test_the_run_takes_its_longest_chain_and_all_steps_on_the_cores() -> None:
    first, second, third, last = (step("extract")._replace(after=after) for after in ((), (0,), (0,), (1, 2)))
    costs = [Cost(100, 700, 1, "a"), Cost(30, 600, 1, "b"), Cost(50, 600, 1, "a"), Cost(3600, 1200, 1, "a")]
    steps = [first, second._replace(rule="decode"), third._replace(rule="decode"), last._replace(rule="score")]
    assert describe(steps, costs, 2) == [
        "rule     steps     time    memory  recorded in",
        "extract      1     1:40  700.0 MB  a",
        "decode       2     1:20  600.0 MB  a, b",
        "score        1  1:00:00    1.2 GB  a",
        "in all at least 1:02:30 on 2 cores",  # 100 + 50 + 3600; all on two cores are 1890
    ]
    wide = [each._replace(threads=8) for each in costs]
    assert describe(steps, wide, 2)[-1] == "in all at least 1:03:00 on 2 cores"  # every step has both cores
    *_, extract, unknown, total = describe(steps, [*costs[:2], None, None], 2)
    assert extract.startswith("extract ")
    assert unknown == f"{FIRST_RUN}: decode (2), score"
    assert total == "in all at least 2:10 on 2 cores; steps not known yet: 2"
    assert describe([], [], 2) == ["time and memory: everything is up to date"]


def test_the_time_left_of_a_run_counts_what_is_done_and_what_runs() -> None:
    record("extract", "extract", 100, {"n": 1})
    steps = {7: step("extract", {"n": 1}), 9: step("extract", {"n": 1})._replace(after=(0,)), 8: step("draw_gpu")}
    left = TimeLeft(steps, Path("results/a"), 2)
    assert left() == "at least 3:20 left, 1 steps not known"
    assert left({7: 90.0, 8: 1.0}) == "at least 1:40 left"
    assert left({7: 150.0, 8: 1.0}) == "at least 2:30 left"  # This run is half slower than the record.
    assert left({7: 100.0}, {9: 70.0, 8: 1.0}) == "at least 0:30 left"
    assert left({7: 100.0, 8: 1.0}, {9: 170.0}) == "at least 0:00 left"
    assert TimeLeft({8: steps[8]}, Path("results/a"), 2)() == ""


def test_what_cannot_be_forecast_is_a_line() -> None:
    assert forecast(Path("results/b"), SIZES, []) == [f"time and memory: {FIRST_RUN}"]
    record("vocabulary", "vocabulary", 9)
    (line,) = forecast(Path("results/b"), SIZES, [])  # There is no Snakefile here.
    assert line.startswith("time and memory: not known; snakemake --dry-run: ")


def test_the_steps_of_a_run_are_those_of_the_workflow() -> None:
    Path("Snakefile").write_bytes(SNAKEFILE.read_bytes())
    Path("config.yaml").write_bytes((WORKFLOW / "config.yaml").read_bytes())
    steps = planned_steps([])
    numbers = {each.rule: number for number, each in enumerate(steps)}
    captioner, decoding = (steps[numbers[rule]] for rule in ("train_captioner", "decode"))
    assert (steps[0].stage, steps[0].after) == ("data_scenes", [])
    assert captioner.models == {"patch_attention", "cross_entropy"}
    assert decoding.models == {"patch_attention"}
    assert numbers["train_captioner"] in decoding.after
    assert steps[numbers["extract"]].values["tasks"] == 1
    assert captioner.work(SIZES) == 10 * 3  # three epochs


def test_a_data_set_without_sizes_has_those_of_its_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    record("vocabulary", "vocabulary", 25)
    monkeypatch.setattr("vitcapr.commands.forecast.planned_steps", lambda _: [step("vocabulary")])
    assert forecast(Path("results/a"), Counter(), [])[1].split()[:3] == ["vocabulary", "1", "0:25"]
    assert FIRST_RUN in forecast(Path("results/b"), Counter(), [])[1]


def test_a_rule_of_the_users_own_has_no_forecast() -> None:
    own = """

rule own:
    default_target: True
    input: "results/demo/data/manifest.json"
    output: "own.txt"
    shell: "touch {output}"
"""
    Path("Snakefile").write_text(SNAKEFILE.read_text() + own)
    Path("config.yaml").write_bytes((WORKFLOW / "config.yaml").read_bytes())
    assert [each.stage for each in planned_steps([])] == ["data_scenes"]
