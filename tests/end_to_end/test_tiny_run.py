"""What a captioning experiment leaves, very small: from rendering to the table, as a user types it."""

import csv
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.forks import Forks

pytestmark = pytest.mark.timeout(1800)


def test_the_summary_is_tidy(project: Path) -> None:
    with (project / "results/tiny/summary.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    columns = ["experiment", "dataset", "split", "model", "decoding", "metric", "value", "low", "high", "n", "protocol"]
    assert list(rows[0]) == columns
    assert {(row["model"], row["decoding"]) for row in rows} == {
        *(("attention", way) for way in ("greedy", "beam", "reranked", "oracle")),
        ("recommended", ""),
    }
    metrics = {row["metric"] for row in rows if (row["model"], row["decoding"]) == ("attention", "beam")}
    assert {"bleu_1", "bleu_4", "meteor", "rouge_l", "cider", "grounding", "pointing_game"} <= metrics
    found = {row["metric"] for row in rows if row["model"] == "recommended"}
    assert {f"{way}_{score}" for way in ("i2t", "t2i") for score in ("recall_1", "median_rank", "map_r")} <= found
    assert "rsum" in found
    with (project / "results/summary.csv").open(newline="") as stream:
        assert [row for row in csv.DictReader(stream) if row["experiment"] == "tiny"] == rows


def test_every_job_leaves_a_record(project: Path) -> None:
    root = project / "results/tiny"
    logs = {path.relative_to(root / "logs").with_suffix("") for path in (root / "logs").rglob("*.log")}
    records = {path.relative_to(root / "runs").with_suffix("") for path in (root / "runs").rglob("*.json")}
    assert records == logs
    record = json.loads((root / "runs/train_captioner/attention.json").read_text())
    assert "results/tiny/features/vit/manifest.json" in record["inputs"]
    assert "results/tiny/captioners/attention/best.safetensors" in record["outputs"]
    assert (project / "results/result_cache" / record["result_cache"]["key"] / "entry.json").exists()


def test_training_stopped_by_a_signal_continues_bit_for_bit(project: Path, forks: Forks, tmp_path: Path) -> None:
    results = project / "results/tiny"
    settings = {
        "captioner": {
            "backbone": "vit",
            "embedding_dim": 16,
            "hidden_dim": 16,
            "attention_dim": 16,
            "training": {
                "phases": [{"epochs": 16, "batch_images": 4, "learning_rate": 0.01}],
                "ema_decay": 0.9,
                "label_smoothing": 0.1,
                "save_every_steps": 5,
            },
        }
    }

    def command(output: Path) -> list[str]:
        return [
            *("-m", "vitcapr", "stage", "train_captioner", "--settings", json.dumps(settings)),
            *("--features", str(results / "features/vit/manifest.json")),
            *("--manifest", str(results / "data/manifest.json"), "--tokens", str(results / "text/tokens.npz")),
            *("--vocabulary", str(results / "text/vocabulary.json"), "--captioner", str(output)),
        ]

    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert forks.run(*command(whole), folder=tmp_path).returncode == 0
    state = parts / "checkpoint/state.safetensors"
    code = f"import os, sys; open('pid', 'w').write(str(os.getpid())); sys.argv = {command(parts)[1:]!r}"
    process = [str(forks.python), "-c", f"{code}; from vitcapr.commands.main import main; main()"]
    stopped = subprocess.Popen(process, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not state.exists() and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGUSR1)
    assert stopped.wait() == 75, stopped.communicate()[1]
    assert not (parts / "card.json").exists()
    continued = forks.run(*command(parts), folder=tmp_path)
    assert continued.returncode == 0
    assert "continuing at epoch" in continued.stderr
    for name in ("best.safetensors", "history.csv", "card.json"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes(), name
