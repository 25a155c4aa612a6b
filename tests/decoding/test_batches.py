import threading

import numpy as np
import pytest
import torch

from vitcapr.decoding.batches import feature_batches


class Rows:
    def __init__(self, content):
        self.content, self.readers, self.asked = content, set(), []

    def gather(self, rows):
        self.readers.add(threading.current_thread())
        self.asked.append(rows.tolist())
        return self.content[rows]


@pytest.mark.parametrize("size", [1, 3, 4, 10])
def test_every_row_once_and_in_order(size):
    source = Rows(np.arange(40, dtype=np.float16).reshape(10, 4))
    rows = np.array([9, 1, 2, 7])
    batches = list(feature_batches({"cls": source, "patches": source}, ["cls"], rows, size, torch.device("cpu")))
    joined = torch.cat([batch["cls"] for batch in batches])
    assert joined.dtype == torch.float32
    np.testing.assert_array_equal(joined.numpy(), source.content[rows])
    assert all(len(batch["cls"]) <= size and set(batch) == {"cls"} for batch in batches)
    assert threading.current_thread() not in source.readers


def test_the_next_batch_is_read_ahead_and_no_more():
    source = Rows(np.zeros((6, 1), np.float16))
    batches = feature_batches({"cls": source}, ["cls"], np.arange(6), 2, torch.device("cpu"))
    next(batches)
    assert [0, 1] in source.asked
    assert [4, 5] not in source.asked
    batches.close()


def test_an_error_of_the_reader_arrives():
    source = Rows(np.zeros((2, 1), np.float16))
    with pytest.raises(IndexError):
        list(feature_batches({"cls": source}, ["cls"], np.array([5]), 2, torch.device("cpu")))
