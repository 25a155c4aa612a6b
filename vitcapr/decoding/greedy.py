"""Greedy decoding: the most probable word at every step.

Apart from the beam search on purpose: training validates with this module, and an edit of the beam must not make
trained models stale.
"""

from typing import Unpack

import torch
from torch import Tensor

from vitcapr.decoding.hypotheses import Hypothesis
from vitcapr.decoding.stepwise import Limits, decode_stepwise
from vitcapr.models.interface import Memory, StepwiseCaptioner


@torch.inference_mode()
def greedy(model: StepwiseCaptioner, memory: Memory, **limits: Unpack[Limits]) -> list[Hypothesis]:
    """One caption for each of B images.

    Equal to a beam of one hypothesis. Equally probable words are taken in the order of their numbers.

    Args:
        memory: of B images, as ``model.encode`` gives it.
        limits: see :class:`Limits`.

    Raises:
        UserError: ``min_length`` is above ``max_length``, or cannot be reached under ``block_ngram``.
    """
    found = decode_stepwise(model, memory, lambda log_probs, _, __: _first_largest(log_probs), **limits)
    return [caption for (caption,) in found]


def _first_largest(values: Tensor) -> Tensor:
    """The index of the largest number along the last axis, of equal ones the lowest: (...) int64 from (..., V).

    ``argmax`` leaves the order of equal numbers open on a GPU, and on a CPU takes several times as long. A row with
    NaN gives 0: nothing is smaller than a largest number that is none.
    """
    size = values.shape[-1]
    numbers = torch.arange(size, dtype=torch.int32, device=values.device)
    return torch.where(values < values.amax(-1, keepdim=True), size, numbers).amin(-1).long()
