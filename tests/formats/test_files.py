"""Every file on disk: what was written comes back, and what does not fit is one line and never a traceback."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.data_sets import token_table
from vitcapr.errors import UserError
from vitcapr.formats.captions import (
    AttentionTable,
    Candidate,
    read_attention,
    read_captions,
    read_results,
    write_attention,
    write_captions,
)
from vitcapr.formats.containers import read_arrays, write_arrays
from vitcapr.formats.embeddings import Embeddings, QueryBankWeight, RerankingWeight, read_embeddings, write_embeddings
from vitcapr.formats.model import read_card, write_card
from vitcapr.formats.pair_files import (
    Pools,
    read_cleaning,
    read_pair_table,
    read_pools,
    write_cleaning,
    write_pair_table,
    write_pools,
)
from vitcapr.formats.scores import (
    COLUMNS,
    ParaphrasesCard,
    RankFile,
    Ranks,
    read_comparison,
    read_metrics,
    read_per_image,
    read_summary,
    write_comparison,
    write_metrics,
    write_per_image,
    write_summary,
)
from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.training_files import gpu_csv, gpu_row, read_gpu_use, read_history, whole_rows, write_history
from vitcapr.formats.vocabulary import Vocabulary, read_word_vectors, write_word_vectors
from vitcapr.metrics.bootstrap import plain_score

FOREIGN = (
    b"",
    b"\x00\xff\xfe",
    b"[]",
    b"null",
    b'"x"',
    b"3",
    b"{}",
    b"PK\x03\x04 nothing",
    b"PAR1 nothing",
    b"a,b\n1,2\n",
)

TEXT = ("history", "gpu", "summary")
"""Rows of text: the beginning of such a file is one."""
ADMITTED = {"captions": b"[]"}

CANDIDATE = Candidate(caption="a b", tokens=("a", "b"), token_log_probs=(-0.5, -0.25, -1.0), log_prob=-1.75, score=-0.5)
IDENTITY = {"model": "m", "decoding": "d", "protocol": "p"}
DIFFERENCE = {"before": 300, "after": 0.5, "difference": -1, "low": None, "high": None, "p_value": 0.5, "verdict": "v"}
COMPARISON = {
    **{"dataset": "d", "split": "test", "images": 3, "changed": 2, "before": IDENTITY, "after": IDENTITY},
    **{"metrics": {"cider": DIFFERENCE}, "protocol": "paired"},
}
WEIGHT = RerankingWeight(0.25, [{"weight": 0.0, "cider": 0.5}], 1.0, 0.5, "0" * 64, "split:validation")
BANK = QueryBankWeight(0.25, [{"weight": 0.0, "rsum": 0.5}], 10.0, 3, 6, "rsum")
PARAPHRASES = ParaphrasesCard(3, "0" * 64, "1" * 64)
REMOVED = {"en": {"captions": 2, "characters": 9, "kept": 8}}
METRICS = {"dataset": "d", "split": "test", "model": "m", "decoding": "", "protocol": "p"}
METRICS |= {"metrics": {"cider": plain_score(1 / 3, 3)}}


def save(path: Path, value: Any) -> None:
    value.write(path)


def read_candidates(path: Path) -> list[tuple[str, Any]]:
    return [(image, caption.candidates) for image, caption in read_captions(path).items()]


def read_scores(path: Path) -> dict[str, Any]:
    return {key: value for key, value in read_metrics(path).items() if key != "format"}


def read_device(path: Path) -> str:
    return read_gpu_use(path).device


ROWS = np.array([0, 2], np.int32)
OWNER = np.array([0, 0, 1], np.int32)
CAPTION_ROWS = np.array([0, 1, 4], np.int32)
ATTENTION = AttentionTable(np.full((3, 6), 0.5, np.float16), np.array([0, 1, 3]), ROWS, (2, 3))
EMBEDDINGS = Embeddings(np.eye(2, 4, dtype=np.float32), np.eye(3, 4, dtype=np.float32), ROWS, CAPTION_ROWS, OWNER)
RANKS = RankFile(
    Ranks(np.array([1, 3], np.int32), np.array([1, 2, 1], np.int32), np.array([1.0, 0.0])), ROWS, CAPTION_ROWS, OWNER
)
POOLS = Pools(ROWS, CAPTION_ROWS, CAPTION_ROWS[:1], ROWS)
TOKENS = token_table([[1, 5, 2], [1, 2]], [0, 0], [0, 1])
VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)

PAIRS = pd.DataFrame({"caption_id": ["a"], "raw": ["Oh, x!"], "category": ["food"]})
PER_IMAGE = pd.DataFrame({"image_id": ["a"], "caption": ["x"], "tokens": ["x"]})

Format = tuple[Any, Callable[[Path, Any], Any], Callable[[Path], Any]]
FORMATS: dict[str, Format] = {
    "captions": ([("i", [CANDIDATE])], write_captions, read_candidates),
    "metrics": (METRICS, lambda path, value: write_metrics(path, **value), read_scores),
    "comparison": (COMPARISON, write_comparison, read_comparison),
    "reranking": (WEIGHT, save, RerankingWeight.read),
    "bank": (BANK, save, QueryBankWeight.read),
    "card": ({"settings": {}}, lambda path, value: write_card(path.parent, value), read_card),
    "paraphrases": (PARAPHRASES, save, ParaphrasesCard.read),
    "cleaning": (REMOVED, lambda path, value: write_cleaning(path, value, cleaned=True), read_cleaning),
    "attention": (ATTENTION, write_attention, read_attention),
    "embeddings": (EMBEDDINGS, write_embeddings, read_embeddings),
    "ranks": (RANKS, save, RankFile.read),
    "pools": (POOLS, write_pools, read_pools),
    "tokens": (TOKENS, save, TokenTable.read),
    "vocabulary": (Vocabulary.build(["a", "dog"], min_count=1), save, Vocabulary.read),
    "vectors": (VECTORS, write_word_vectors, read_word_vectors),
    "per_image": (PER_IMAGE, write_per_image, read_per_image),
    "pairs": (PAIRS, write_pair_table, lambda path: read_pair_table(path, ["a"])),
    "history": ([{"epoch": 1, "train_loss": 2.5}], write_history, lambda path: read_history(path).to_dict("records")),
    "gpu": ("GPU", lambda path, value: path.write_text(gpu_csv(value, ["1,2,3,4"])), read_device),
    "summary": (pd.DataFrame(columns=COLUMNS), write_summary, read_summary),
}
"""What is written, how, and how it is read; a reader gives what its writer takes."""


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_comes_back_and_foreign_and_cut_files_are_refused(tmp_path: Path, name: str) -> None:
    check_file(tmp_path, FORMATS[name], name)


def check_file(tmp_path: Path, written: Format, name: str = "") -> None:
    value, write, read = written
    path = tmp_path / "card.json"
    write(path, value)
    whole = path.read_bytes()
    write(path, read(path))
    assert path.read_bytes() == whole
    cut = [] if name in TEXT else [whole[: len(whole) * number // 8] for number in range(1, 8)]
    for content in [*cut, *(other for other in FOREIGN if other != ADMITTED.get(name))]:
        path.write_bytes(content)
        with pytest.raises(UserError) as caught:
            read(path)
        assert str(path) in str(caught.value)
        assert caught.value.remedy
    path.unlink()
    with pytest.raises(UserError, match="no such file"):
        read(path)
    path.mkdir()
    with pytest.raises(UserError) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_captions_are_rounded_and_say_how_they_were_chosen(tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    other = CANDIDATE.model_copy(update={"score": -0.75, "cosine": 0.123456789})
    write_captions(path, [("i", [CANDIDATE, other])], oracle="why")
    found = read_captions(path)["i"]
    assert (found.caption, found.tokens, found.candidates[0]) == ("a b", ("a", "b"), CANDIDATE)
    assert json.loads(path.read_text())[0]["candidates"][1]["cosine"] == 0.123457
    assert read_results(path)["i"].oracle == "why"


def test_any_file_in_cocos_format_can_be_scored(tmp_path: Path) -> None:
    path = tmp_path / "captions.json"
    path.write_text('[{"image_id": "b", "caption": "two", "other": 3}, {"image_id": "a", "caption": "one"}]')
    assert {image: result.caption for image, result in read_results(path).items()} == {"b": "two", "a": "one"}
    path.write_text('[{"image_id": 7, "caption": "two"}]')
    assert read_results(path).keys() == {"7"}
    path.write_text('[{"image_id": 7, "caption": "two"}, {"image_id": "7", "caption": "one"}]')
    with pytest.raises(UserError, match="an image has two captions"):
        read_results(path)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("captions", '"image_id"', '"image"', "image_id"),
        ("captions", '"log_prob": -1.75', '"log_prob": NaN', "log_prob"),
        ("captions", '"score": -0.5', '"score": -0.5, "cosine": "high"', "cosine"),
        ("metrics", "vitcapr-metrics-1", "vitcapr-metrics-2", "its format is vitcapr-metrics-2"),
        ("comparison", "vitcapr-comparison-1", "vitcapr-metrics-1", "its format is vitcapr-metrics-1"),
        ("reranking", '"weight": 0.25', '"weight": 1.5', "weight"),
        ("reranking", '"weight": 0.25', '"weight": 0.25, "extra": 1', "extra"),
        ("reranking", "vitcapr-reranking-weight-1", "vitcapr-query-bank-1", "not a weight of format"),
        ("bank", '"images": 3', '"images": 2.5', "images"),
        ("card", "vitcapr-model-2", "vitcapr-model-0", "not the card of a trained model"),
        ("vocabulary", "vitcapr-vocabulary-1", "other", "not a vocabulary"),
        ("vocabulary", '"dog"', '"cat"', "has changed since it was written"),
        ("vocabulary", '"rare": {', '"rare": {"1": 1', "has changed since it was written"),
        ("paraphrases", '"entries": 3', '"entries": -1', "entries"),
    ],
)
def test_json_that_does_not_fit_is_refused(tmp_path: Path, name: str, old: str, new: str, message: str) -> None:
    check_change(tmp_path, FORMATS[name], old, new, message)


def check_change(tmp_path: Path, written: Format, old: str, new: str, message: str) -> None:
    value, write, read = written
    path = tmp_path / "card.json"
    write(path, value)
    content = path.read_text()
    assert old in content
    path.write_text(content.replace(old, new))
    with pytest.raises(UserError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_the_attention_of_an_image_and_the_words_of_a_caption(tmp_path: Path) -> None:
    write_attention(tmp_path / "file.npz", ATTENTION)
    table = read_attention(tmp_path / "file.npz")
    assert [None if (words := table.of_row(row)) is None else len(words) for row in range(3)] == [1, None, 2]
    assert [TOKENS[row].tolist() for row in range(len(TOKENS))] == [[1, 5, 2], [1, 2]]


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("attention", {"weights": np.zeros((3, 5), np.float16)}, "for 2 x 3 patches"),
        ("attention", {"weights": np.zeros((3, 6), np.int32)}, "weights is of type int32"),
        ("attention", {"grid": np.array([6])}, "not a table of attention"),
        ("attention", {"offsets": np.array([0, 3])}, "do not cut"),
        ("embeddings", {"captions": np.zeros((3, 5), np.float32)}, "not of one space"),
        ("embeddings", {"images": np.zeros((2, 4))}, "images is of type float64"),
        ("embeddings", {"image_row": np.arange(3)}, "3 and 3 rows for"),
        ("embeddings", {"caption_row": np.arange(2)}, "2 and 2 rows for"),
        ("embeddings", {"images": np.full((2, 4), np.inf, np.float32)}, "an embedding is not finite"),
        ("ranks", {"i2t": np.array([1.0, 3.0])}, "i2t is of type float64"),
        ("pools", {"image_queries": np.zeros(0, int)}, "no queries set apart"),
        ("tokens", {"offsets": np.array([0, 5])}, "not a table of captions"),
        ("tokens", {"offsets": np.array([0, 3, 4])}, "not a table of captions"),
        ("tokens", {"offsets": np.array([0, 6, 5])}, "not a table of captions"),
        ("tokens", {"ids": np.zeros(5, np.int64)}, "not a table of captions"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    tmp_path: Path, name: str, changes: dict[str, np.ndarray], message: str
) -> None:
    value, write, read = FORMATS[name]
    path = tmp_path / "file.npz"
    write(path, value)
    with np.load(path) as whole:
        arrays = dict(whole)
    np.savez(path, **{**arrays, **changes})
    with pytest.raises(UserError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)
    np.savez(path, **{key: array for key, array in arrays.items() if key not in changes})
    with pytest.raises(UserError, match=next(iter(changes))):
        read(path)


def test_objects_are_neither_written_nor_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(tmp_path / "no.npz", {"a": np.array([{}], object)})
    assert not list(tmp_path.iterdir())
    np.savez(tmp_path / "objects.npz", a=np.array([{}], object))
    with pytest.raises(UserError, match=r"not arrays: .*make them again"):
        read_arrays(tmp_path / "objects.npz", {"a": np.number}, "arrays", "make them")


def test_a_history_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    epochs = [{"epoch": 1, "train_loss": 2.5, "train_reward": ""}, {"epoch": 2, "train_loss": "", "train_reward": 0.5}]
    write_history(path, epochs)
    assert path.read_text() == "epoch,train_loss,train_reward\n1,2.5,\n2,,0.5\n"
    assert read_history(path)["train_loss"].isna().tolist() == [False, True]
    write_history(path, [])
    assert path.read_text() == "epoch,phase,train_loss,validation_loss,learning_rate\n"
    assert read_history(path).empty


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("history", "epoch,loss\n1,1\n", "needs epoch and train_loss"),
        ("gpu", gpu_csv("GPU", ["1,2,3"]) + "x,1,1,1\n", "not a table of GPU use"),
        ("summary", ",".join(COLUMNS) + "\ne,d,s,m,d,cider,high,,,3,p\n", "not a summary"),
        ("summary", ",".join(COLUMNS) + "\ne,d,s,m,d,cider,0.5,,,,p\n", "not a summary"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(content)
    with pytest.raises(UserError, match=message):
        FORMATS[name][2](path)


def test_of_a_killed_training_the_whole_rows_of_gpu_use_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    row = gpu_row((1.0, None, 2.5, 48.0))
    path.write_text(gpu_csv("NVIDIA L40S", [row]) + "3.000,50.0")
    assert row == "1.000,,2.500,48.000"
    assert whole_rows(path) == ("NVIDIA L40S", [row])
    path.write_text(gpu_csv("NVIDIA L40S", []))
    assert whole_rows(path) == ("NVIDIA L40S", [])
    path.write_text(gpu_csv("NVIDIA L40S", [row]))
    assert read_gpu_use(path).device == "NVIDIA L40S"
    assert read_gpu_use(path).samples["gpu_percent"].isna().all()


def test_pairs_of_another_manifest_or_with_other_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    write_pair_table(path, PAIRS.assign(text="x"))
    pd.testing.assert_frame_equal(read_pair_table(path, ["a"]), PAIRS, check_dtype=False)
    with pytest.raises(UserError, match="belongs to another manifest"):
        read_pair_table(path, ["b"])
    PAIRS.drop(columns="raw").to_parquet(path, index=False)
    with pytest.raises(UserError, match="not a table of pairs: its columns"):
        read_pair_table(path, ["a"])


def test_other_columns_of_scores_and_other_types_of_vectors_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "per_image.parquet"
    write_per_image(path, pd.DataFrame({"image_id": ["a", "b"], "caption": ["x", "y"]}))
    with pytest.raises(UserError, match="its columns are image_id, caption"):
        read_per_image(path)
    for vectors, message in ((VECTORS.astype(np.float64), "type float64"), (VECTORS[0], r"shape is \(2,\)")):
        np.save(tmp_path / "vectors.npy", vectors)
        with pytest.raises(UserError, match=f"not an embedding of words: .*{message}"):
            read_word_vectors(tmp_path / "vectors.npy")


READING = """
import resource, sys
from pathlib import Path
from vitcapr.formats.scores import read_per_image
from vitcapr.errors import UserError
for more in (6, 96):
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        print(len(read_per_image(Path(sys.argv[1]))))
    except (UserError, MemoryError) as error:
        print("error")
"""


def test_reading_ends_under_a_limit_of_the_address_space(tmp_path: Path) -> None:
    """With threads, it waited for ever for those that could not start."""
    table = tmp_path / "table.parquet"
    columns = {name: [f"{name} {row}" for row in range(1000)] for name in ("image_id", "caption", "tokens")}
    pd.DataFrame(columns).to_parquet(table, index=False)
    command = [sys.executable, "-c", READING, str(table)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert len(done.stdout.split()) == 2, done.stderr
    assert set(done.stdout.split()) <= {"1000", "error"}
