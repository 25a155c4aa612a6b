import threading
from typing import Any

import numpy as np
import pytest
import torch

from tests.data_sets import token_table
from vitcapr.batches.image_batches import Batches
from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.batches.texts import WordTexts
from vitcapr.errors import UserError

CAPTIONS = {0: [[1, 5, 2], [1, 2]], 1: [[1, 6, 7, 8, 2]], 3: [[1, 9, 2]], 4: [[1, 4, 2], [1, 3, 3, 2], [1, 2]]}


@pytest.fixture
def store() -> MemoryFeatures:
    """Every number of row r is r."""
    rows = np.arange(100, dtype=np.float16)[:, None]
    return MemoryFeatures(
        patches=MemoryArray(np.broadcast_to(rows[:, None], (100, 3, 2))),
        cls=MemoryArray(np.broadcast_to(rows, (100, 2))),
    )


@pytest.fixture
def texts() -> WordTexts:
    captions = [(row, caption) for row, several in CAPTIONS.items() for caption in several]
    rows, ids = zip(*captions, strict=True)
    return WordTexts(token_table(ids, rows, range(len(rows))), max_length=4)


def test_a_batch_by_hand(store: MemoryFeatures, texts: WordTexts) -> None:
    batches = Batches(store, texts, np.array([1, 2, 0, 3]), 2, arrays=("patches", "cls"), shuffle=False)
    first, second = batches
    assert len(batches) == 2
    assert first.rows.tolist() == [1, 0]
    assert first.texts.tolist() == [[1, 6, 7, 8], [1, 5, 2, 0], [1, 2, 0, 0]]
    assert first.image_index.tolist() == [0, 1, 1]
    assert first.features["patches"].shape == (2, 3, 2)
    assert first.features["cls"].tolist() == [[1, 1], [0, 0]]
    assert (first.texts.dtype, first.image_index.dtype) == (torch.int64, torch.int64)
    assert first.features["cls"].dtype == torch.float16
    assert second.rows.tolist() == [3]
    assert second.texts.tolist() == [[1, 9, 2]]


@pytest.mark.parametrize("pairs", [False, True])
def test_few_chunks_are_read_at_a_time(pairs: bool) -> None:
    chunk, together, chunks = 16, 3, 10
    images = np.arange(chunk * chunks)
    array = MemoryArray(images[:, None])
    array.chunk = chunk
    texts = WordTexts(token_table([[1, 2]] * 2 * len(images), np.repeat(images, 2), range(2 * len(images))), 2)
    a_batch: dict[str, Any] = {"batch_images": chunk, "batch_pairs": 2 * chunk if pairs else None}

    def order(**options: Any) -> list[int]:
        options |= {"arrays": ("cls",), "shuffle_chunks": together}
        read = Batches({"cls": array}, texts, images, **a_batch, **options)
        return [int(batch.rows[image]) for batch in read for image in batch.image_index]

    first = order(seed=1)
    assert sorted(first) == np.repeat(images, 2).tolist()
    chunks_of = np.array(first).reshape(-1, 2 * chunk) // chunk
    read = [set(part.ravel()) for part in np.array_split(chunks_of, range(together, chunks, together))]
    assert sorted(one for part in read for one in part) == [*range(chunks)]  # No chunk is read in two windows.
    assert all(len(set(batch)) > 1 for batch in chunks_of[:together])
    assert order(seed=1) == first
    assert order(seed=1, start_batch=4) == first[4 * 2 * chunk :]
    assert len({tuple(each) for each in (first, order(seed=2), order(seed=1, epoch=1))}) == 3


def test_captions_need_not_be_grouped(store: MemoryFeatures, texts: WordTexts) -> None:
    texts.image_row = texts.image_row[::-1].copy()
    (batch,) = Batches(store, texts, np.array([0]), 1)
    assert batch.texts.tolist() == [[1, 3, 3, 2], [1, 2, 0, 0]]


def test_leaving_an_epoch_early_ends_its_thread(store: MemoryFeatures, texts: WordTexts) -> None:
    iterator = iter(Batches(store, texts, np.arange(5), 1, depth=1))
    next(iterator)
    iterator.close()  # type: ignore[attr-defined]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("batches")]


def test_an_error_while_reading_ahead_reaches_the_reader(
    store: MemoryFeatures, texts: WordTexts, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = MemoryArray.gather

    def gather(array: MemoryArray, rows: np.ndarray) -> np.ndarray:
        if 3 in rows:
            raise UserError("a chunk of the feature store is missing")
        return real(array, rows)

    monkeypatch.setattr(MemoryArray, "gather", gather)
    iterator = iter(Batches(store, texts, np.array([0, 3]), 1, shuffle=False))
    assert next(iterator).rows.tolist() == [0]
    with pytest.raises(UserError, match="chunk of the feature store is missing"):
        next(iterator)


def test_rows_that_cannot_be_are_refused(store: MemoryFeatures, texts: WordTexts) -> None:
    with pytest.raises(ValueError, match="of a store of 100 images"):
        Batches(store, texts, np.array([100]), 1)
    with pytest.raises(ValueError, match="no image among the rows has a caption"):
        Batches(store, texts, np.array([2]), 1)
