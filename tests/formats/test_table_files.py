"""Files of tables: what does not fit is one line."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.formats.damage import FOREIGN
from vitcapr.errors import UserError
from vitcapr.formats.pairs import read_pair_table, write_pair_table
from vitcapr.formats.scores import COLUMNS, read_per_image, read_summary, write_per_image
from vitcapr.formats.training import gpu_csv, gpu_row, read_gpu_use, read_history, whole_rows, write_history

READERS: dict[str, Callable[[Path], Any]] = {
    "history": read_history,
    "gpu": read_gpu_use,
    "summary": read_summary,
    "per_image": read_per_image,
    "pairs": lambda path: read_pair_table(path, ["a"]),
}
PAIRS = pd.DataFrame({"caption_id": ["a"], "raw": ["Oh, x!"], "category": ["food"]})


@pytest.mark.parametrize("name", READERS)
def test_foreign_files_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    with pytest.raises(UserError, match="no such file"):
        READERS[name](path)
    for content in FOREIGN:
        path.write_bytes(content)
        with pytest.raises(UserError) as caught:
            READERS[name](path)
        assert caught.value.where == path
    path.unlink()
    path.mkdir()
    with pytest.raises(UserError):
        READERS[name](path)


def test_a_history_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    epochs = [{"epoch": 1, "train_loss": 2.5, "train_reward": ""}, {"epoch": 2, "train_loss": "", "train_reward": 0.5}]
    write_history(path, epochs)
    assert path.read_text() == "epoch,train_loss,train_reward\n1,2.5,\n2,,0.5\n"
    assert read_history(path)["train_loss"].isna().tolist() == [False, True]
    write_history(path, [])
    assert path.read_text() == "epoch,phase,train_loss,validation_loss,learning_rate\n"
    with pytest.raises(UserError, match="needs epoch"):
        read_history(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("history", "epoch,loss\n1,1\n", "needs epoch and train_loss"),
        ("gpu", gpu_csv("GPU", ["1,2,3"]) + "x,1,1,1\n", "not a table of GPU use"),
        ("summary", ",".join(COLUMNS) + "\ne,d,s,m,d,cider,high,,,3,p\n", "not a summary"),
        ("summary", ",".join(COLUMNS) + "\ne,d,s,m,d,cider,0.5,,,,p\n", "not a summary"),
    ],
)
def test_content_that_does_not_fit_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        READERS[name](path)


def test_of_a_killed_training_the_whole_rows_of_gpu_use_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    row = gpu_row((1.0, None, 2.5, 48.0))
    path.write_text(gpu_csv("NVIDIA L40S", [row]) + "3.000,50.0")
    assert row == "1.000,,2.500,48.000"
    assert whole_rows(path) == ("NVIDIA L40S", [row])
    path.write_text(gpu_csv("NVIDIA L40S", [row]))
    assert read_gpu_use(path).device == "NVIDIA L40S"
    assert read_gpu_use(path).samples["gpu_percent"].isna().all()


def test_scores_by_image_without_a_column_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "per_image.parquet"
    write_per_image(path, pd.DataFrame({"image_id": ["a", "b"], "caption": ["x", "y"]}))
    with pytest.raises(UserError, match="its columns are image_id, caption"):
        read_per_image(path)


@pytest.mark.parametrize("name", ["per_image", "pairs"])
def test_cut_parquet_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "table.parquet"
    if name == "pairs":
        write_pair_table(path, PAIRS)
    else:
        write_per_image(path, pd.DataFrame({"image_id": ["a"], "caption": ["x"], "tokens": ["x"]}))
    content = path.read_bytes()
    assert len(READERS[name](path)) == 1
    for number in range(1, 8):
        path.write_bytes(content[: len(content) * number // 8])
        with pytest.raises(UserError, match="not a table of"):
            READERS[name](path)


def test_pairs_of_another_manifest_or_with_other_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    write_pair_table(path, PAIRS.assign(text="x"))
    pd.testing.assert_frame_equal(read_pair_table(path, ["a"]), PAIRS, check_dtype=False)
    with pytest.raises(UserError, match="belongs to another manifest"):
        read_pair_table(path, ["b"])
    PAIRS.drop(columns="raw").to_parquet(path, index=False)
    with pytest.raises(UserError, match="not a table of pairs: its columns"):
        read_pair_table(path, ["a"])


READING = """
import resource, sys
from pathlib import Path
from vitcapr.formats.scores import read_per_image
from vitcapr.errors import UserError
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[2]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    print(len(read_per_image(Path(sys.argv[1]))))
except (UserError, MemoryError) as error:
    print("error")
"""


@pytest.mark.parametrize("more", [0, 2, 6, 12, 24, 48, 96])
def test_reading_ends_under_a_limit_of_the_address_space(tmp_path: Path, more: int) -> None:
    """With threads, it waited for ever for those that could not start."""
    table = tmp_path / "table.parquet"
    columns = {name: [f"{name} {row}" for row in range(1000)] for name in ("image_id", "caption", "tokens")}
    pd.DataFrame(columns).to_parquet(table, index=False)
    command = [sys.executable, "-c", READING, str(table), str(more)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout in ("1000\n", "error\n"), done.stderr
