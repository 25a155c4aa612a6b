"""The LSTM over all words at once against torch's own."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from vitcapr.models.recurrent import StepOrder, read_words

EMBEDDING, UNITS = 3, 4


def mask_of(lengths: list[int], padding: int = 0) -> Tensor:
    return torch.arange(max(lengths) + padding) < torch.tensor(lengths)[:, None]


def by_torch(lstm: nn.LSTM, words: Tensor, mask: Tensor, start: tuple[Tensor, Tensor]) -> Tensor:
    padded = words.new_zeros(*mask.shape, words.shape[1]).index_put(mask.nonzero(as_tuple=True), words)
    packed = pack_padded_sequence(padded, mask.sum(1), batch_first=True, enforce_sorted=False)
    hidden, _ = pad_packed_sequence(
        lstm(packed, (start[0][None], start[1][None]))[0], batch_first=True, total_length=mask.shape[1]
    )
    return hidden[mask]


def problem(mask: Tensor, dtype: torch.dtype) -> tuple[nn.LSTM, Tensor, tuple[Tensor, Tensor]]:
    torch.manual_seed(0)
    lstm = nn.LSTM(EMBEDDING, UNITS, batch_first=True).to(dtype)
    words = torch.randn(int(mask.sum()), EMBEDDING, dtype=dtype, requires_grad=True)
    hidden, cell = (torch.randn(len(mask), UNITS, dtype=dtype, requires_grad=True) for _ in range(2))
    return lstm, words, (hidden, cell)


def test_words_by_time_step() -> None:
    order = StepOrder.of(mask_of([2, 1, 3, 2], padding=1))
    assert order.captions.tolist() == [2, 0, 3, 1]
    assert order.places.tolist() == [3, 0, 6, 2, 4, 1, 7, 5]
    assert order.sizes == [4, 3, 1]
    assert order.slices() == [(slice(0, 4), None), (slice(4, 7), slice(0, 3)), (slice(7, 8), slice(4, 5))]
    assert order.places[order.inverse()].tolist() == list(range(8))


@settings(max_examples=25)
@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=7), padding=st.integers(0, 2))
def test_values_and_gradients_equal_torchs(lengths: list[int], padding: int) -> None:
    mask = mask_of(lengths, padding)
    lstm, words, start = problem(mask, torch.float32)
    ours, theirs = read_words(lstm, words, mask, start), by_torch(lstm, words, mask, start)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    upstream = torch.randn_like(ours)
    inputs = [words, *start, *lstm.parameters()]
    for mine, reference in zip(
        torch.autograd.grad(ours, inputs, upstream), torch.autograd.grad(theirs, inputs, upstream), strict=True
    ):
        torch.testing.assert_close(mine, reference, rtol=1e-5, atol=1e-5)


def test_gradients_equal_finite_differences() -> None:
    mask = mask_of([3, 1, 2])
    lstm, words, start = problem(mask, torch.float64)

    def read(words: Tensor, hidden: Tensor, cell: Tensor, *weights: Tensor) -> Tensor:
        named = dict(zip(dict(lstm.named_parameters()), weights, strict=True))
        return torch.func.functional_call(
            Reader(lstm), {f"lstm.{n}": w for n, w in named.items()}, (words, hidden, cell)
        )

    class Reader(nn.Module):
        def __init__(self, lstm: nn.LSTM) -> None:
            super().__init__()
            self.lstm = lstm

        def forward(self, words: Tensor, hidden: Tensor, cell: Tensor) -> Tensor:
            return read_words(self.lstm, words, mask, (hidden, cell))

    assert torch.autograd.gradcheck(read, (words, *start, *lstm.parameters()))


def test_low_precision_products_keep_float32_states() -> None:
    mask = mask_of([5, 2, 4])
    lstm, words, start = problem(mask, torch.float32)
    exact = read_words(lstm, words, mask, start)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = read_words(lstm, words, mask, start)
    assert rounded.dtype == torch.float32
    assert not torch.equal(rounded, exact)
    torch.testing.assert_close(rounded, exact, rtol=0, atol=0.02)
    inputs = [words, *start, *lstm.parameters()]
    upstream = torch.randn_like(exact)
    for low, high in zip(
        torch.autograd.grad(rounded, inputs, upstream), torch.autograd.grad(exact, inputs, upstream), strict=True
    ):
        assert low.dtype == torch.float32
        torch.testing.assert_close(low, high, rtol=0.05, atol=0.05)


def test_same_bytes_every_time() -> None:
    mask = mask_of([5, 2, 4])
    lstm, words, start = problem(mask, torch.float32)
    found = []
    for _ in range(2):
        hidden = read_words(lstm, words, mask, start)
        found.append(torch.autograd.grad(hidden.square().sum(), [words, *start, *lstm.parameters()]))
    assert all(torch.equal(first, second) for first, second in zip(*found, strict=True))


@pytest.mark.parametrize("frozen", ["words", "weights"])
def test_what_needs_no_gradient_gets_none(frozen: str) -> None:
    mask = mask_of([2, 1])
    lstm, words, start = problem(mask, torch.float32)
    (words if frozen == "words" else lstm).requires_grad_(False)
    read_words(lstm, words, mask, start).sum().backward()
    assert (words.grad is None) == (frozen == "words")
    assert (lstm.weight_hh_l0.grad is None) == (frozen == "weights")
