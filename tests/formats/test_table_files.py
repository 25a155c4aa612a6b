"""Files of tables: what does not fit is one line."""

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
        ("history", "epoch,train_loss\n1,high\n", "train_loss is not a number"),
        ("history", "epoch,train_loss\n2,1\n1,1\n", "do not increase"),
        ("history", "epoch,train_loss\n1,1\n2,\n", "neither loss nor reward"),
        ("history", "epoch,train_loss\n,1\n", "do not increase"),
        ("history", "epoch,loss\n1,1\n", "needs epoch and train_loss"),
        ("gpu", gpu_csv("GPU", ["1,2,3"]) + "x,1,1,1\n", "not a table of GPU use"),
        ("gpu", gpu_csv("GPU", ["1,-2,3,4"]), "negative"),
        ("gpu", gpu_csv("GPU", ["1,inf,3,4"]), "infinite"),
        ("gpu", gpu_csv("GPU", [",2,3,4"]), "missing"),
        ("summary", ",".join(COLUMNS) + "\ne,d,s,m,d,cider,inf,,,3,p\n", "infinite"),
        ("summary", ",".join(COLUMNS) + "\ne,d,s,m,d,cider,0.5,,,-3,p\n", "negative"),
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


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"image_id": ["a", "a"], "caption": ["x", "y"], "tokens": ["x", "y"]}, "twice"),
        ({"image_id": ["a", "b"], "caption": ["x", "y"]}, "no column tokens"),
    ],
)
def test_scores_by_image_that_do_not_fit_are_refused(tmp_path: Path, table: dict[str, Any], message: str) -> None:
    path = tmp_path / "per_image.parquet"
    write_per_image(path, pd.DataFrame(table))
    with pytest.raises(UserError, match=message):
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
