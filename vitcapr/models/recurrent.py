"""A single-layer LSTM over captions of unequal length, all words of a batch at once.

torch's own LSTM on a CPU lets autograd follow every time step, which adds up the weights' gradients step by step.
Here the products with the input and those for the weights' gradients are one matrix product over all words each,
and only what depends on the step before is left in the loop.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence


@dataclass(frozen=True)
class StepOrder:
    """The words of M captions, ordered by time step, the longest caption first within a step.

    A word's place is its number among the real words in row-major order of the mask.

    Args:
        places: (n,) int64, the places of the words of the first step, of the second, and so on.
        captions: (M,) int64, the captions from the longest to the shortest.
        sizes: how many captions each step still has.
    """

    places: Tensor
    captions: Tensor
    sizes: list[int]

    @classmethod
    def of(cls, mask: Tensor) -> "StepOrder":
        """mask: (M, T) bool, the real words: the first ones of each row, at least one."""
        lengths = mask.sum(1)
        captions = torch.argsort(lengths, descending=True, stable=True)
        steps = torch.arange(mask.shape[1], device=mask.device)[:, None]
        inside = steps < lengths[captions]
        places = ((lengths.cumsum(0) - lengths)[captions] + steps)[inside]
        return cls(places, captions, [size for size in inside.sum(1).tolist() if size])

    def slices(self) -> list[tuple[slice, slice | None]]:
        """Of each step: its words, and the same captions' words one step before (None at the first step)."""
        found: list[tuple[slice, slice | None]] = []
        end = 0
        for step, size in enumerate(self.sizes):
            before = end - self.sizes[step - 1]
            found.append((slice(end, end + size), slice(before, before + size) if step else None))
            end += size
        return found

    def inverse(self) -> Tensor:
        """(n,) int64: where the word of each place stands in this order."""
        return torch.empty_like(self.places).index_copy_(
            0, self.places, torch.arange(len(self.places), device=self.places.device)
        )


def read_words(lstm: nn.LSTM, words: Tensor, mask: Tensor, start: tuple[Tensor, Tensor]) -> Tensor:
    """The hidden state after every word, as ``nn.LSTM`` gives it.

    Args:
        lstm: one layer, one direction, with biases.
        words: (n, E), the real words in row-major order of ``mask``.
        mask: (M, T) bool, the first words of each row, at least one.
        start: h and c before the first word, (M, H) each.

    Returns:
        (n, H) in the order of ``words``; float32 under autocast on a CPU, where only the products are of low precision.
    """
    order = StepOrder.of(mask)
    hidden, cell = start[0][order.captions], start[1][order.captions]
    if words.device.type == "cpu":
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else words.dtype
        input_weight, recurrent_weight, input_bias, recurrent_bias = lstm.all_weights[0]
        bias = input_bias + recurrent_bias
        return _Recurrence.apply(  # type: ignore[no-any-return]
            words.to(dtype), input_weight.to(dtype), recurrent_weight.to(dtype), bias, hidden, cell, order
        )
    packed = PackedSequence(words[order.places], torch.tensor(order.sizes))
    first = (hidden[None].to(words.dtype), cell[None].to(words.dtype))
    return lstm(packed, first)[0].data[order.inverse()]  # type: ignore[no-any-return]


class _Recurrence(torch.autograd.Function):
    """Gates in torch's order: input, forget, candidate, output."""

    @staticmethod
    def forward(
        ctx: Any,
        words: Tensor,
        input_weight: Tensor,
        recurrent_weight: Tensor,
        bias: Tensor,
        hidden: Tensor,
        cell: Tensor,
        order: StepOrder,
    ) -> Tensor:
        words = words.index_select(0, order.places)
        gates = _add_product(bias.repeat(len(words), 1), words, input_weight.t())
        units = hidden.shape[1]
        cells, squashed, states = (gates.new_empty(len(words), units) for _ in range(3))
        for here, before in order.slices():
            last_hidden, last_cell = (hidden, cell) if before is None else (states[before], cells[before])
            input_gate, forget, candidate, output_gate = _add_product(
                gates[here], last_hidden, recurrent_weight.t()
            ).chunk(4, dim=1)
            gates[here, : 2 * units].sigmoid_()
            candidate.tanh_()
            output_gate.sigmoid_()
            torch.mul(forget, last_cell, out=cells[here]).addcmul_(input_gate, candidate)
            torch.mul(output_gate, torch.tanh(cells[here], out=squashed[here]), out=states[here])
        ctx.order = order
        ctx.save_for_backward(words, input_weight, recurrent_weight, hidden, cell, gates, cells, squashed, states)
        return states.index_select(0, order.inverse())

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        words, input_weight, recurrent_weight, hidden, cell, gates, cells, squashed, states = ctx.saved_tensors
        order: StepOrder = ctx.order
        units = hidden.shape[1]
        upstream = gradients[0].index_select(0, order.places)
        for_gates = torch.empty_like(gates)
        for_hidden, for_cell, scratch = (torch.zeros_like(cell) for _ in range(3))
        steps = order.slices()
        for here, before in reversed(steps):
            size = here.stop - here.start
            last_cell = cell if before is None else cells[before]
            input_gate, forget, candidate, output_gate = gates[here].chunk(4, dim=1)
            for_input, for_forget, for_candidate, for_output = for_gates[here].chunk(4, dim=1)
            from_hidden, from_cell, part = for_hidden[:size], for_cell[:size], scratch[:size]
            from_hidden += upstream[here]
            _sigmoid_slope(torch.mul(from_hidden, squashed[here], out=for_output), output_gate)
            from_cell += _tanh_slope(torch.mul(from_hidden, output_gate, out=part), squashed[here])
            torch.mul(from_cell, candidate, out=for_input)
            torch.mul(from_cell, last_cell, out=for_forget)
            _sigmoid_slope(for_gates[here, : 2 * units], gates[here, : 2 * units])
            _tanh_slope(torch.mul(from_cell, input_gate, out=for_candidate), candidate)
            from_cell *= forget
            _put_product(from_hidden, for_gates[here], recurrent_weight)
        last_hidden = torch.cat([hidden if before is None else states[before] for _, before in steps])
        low = for_gates.to(words.dtype)
        for_words = torch.empty_like(words).index_copy_(0, order.places, low @ input_weight)
        return (
            for_words,
            low.t() @ words,
            low.t() @ last_hidden.to(low.dtype),
            for_gates.sum(0),
            for_hidden,
            for_cell,
            None,
        )


def _add_product(sums: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Add ``left @ right`` to ``sums`` in place; the product is taken in the dtype of ``right``."""
    if right.dtype == sums.dtype:
        return sums.addmm_(left, right)
    return sums.add_(left.to(right.dtype) @ right)


def _put_product(into: Tensor, left: Tensor, right: Tensor) -> None:
    if right.dtype == into.dtype:
        torch.mm(left, right, out=into)
    else:
        into.copy_(left.to(right.dtype) @ right)


def _sigmoid_slope(gradient: Tensor, outputs: Tensor) -> Tensor:
    """``gradient`` times s (1 - s), in place."""
    return torch.ops.aten.sigmoid_backward.grad_input(gradient, outputs, grad_input=gradient)  # type: ignore[no-any-return]


def _tanh_slope(gradient: Tensor, outputs: Tensor) -> Tensor:
    """``gradient`` times 1 - t^2, in place."""
    return torch.ops.aten.tanh_backward.grad_input(gradient, outputs, grad_input=gradient)  # type: ignore[no-any-return]
