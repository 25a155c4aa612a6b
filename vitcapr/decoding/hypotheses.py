"""What all searches share: a caption as word numbers with its log-probabilities, and which words may come next."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from vitcapr.errors import UserError


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A finished caption.

    The end token is part of the probability, not of the caption: ``token_log_probs`` has one number more than
    ``tokens``. A caption that was cut at the maximum length has the log-probability of ending there, so that every
    hypothesis is a whole sentence of the model and all are comparable.
    """

    tokens: list[int]
    """The words, without start and end."""
    token_log_probs: list[float]
    """Natural logarithm of the model's probability of each word, then of the end token."""
    log_prob: float
    """The sum of ``token_log_probs``."""
    score: float
    """The score by which a beam ranks; for greedy decoding, ``log_prob``."""
    attention: NDArray[np.float16] | None
    """(words, P), the attention over the patches for each word; None if not requested."""


def next_log_probs(logits: Tensor, forbidden: Tensor) -> Tensor:
    """The model's own log-probabilities, those of ``forbidden`` tokens replaced by minus infinity.

    The others are not renormalised: a log-probability means the same under every setting of the search.

    Args:
        logits: (..., V) float32.
        forbidden: (F,) int64.

    Returns:
        (..., V) float32, a new tensor.
    """
    return functional.log_softmax(logits, dim=-1).index_fill_(-1, forbidden, -torch.inf)


def block_repeats(log_probs: Tensor, history: Tensor, size: int) -> Tensor:
    """Forbid, in place, every word that would repeat an n-gram of the caption so far.

    Args:
        log_probs: (B, K, V).
        history: (B, K, T) int64, the words so far, start excluded.
        size: the n of the n-gram; 1 forbids every word used before.

    Returns:
        ``log_probs``.
    """
    length = history.shape[2]
    if length < size:
        return log_probs
    grams = history.unfold(2, size, 1)
    last = history[:, :, length - size + 1 :]
    begun = (grams[..., :-1] == last[:, :, None]).all(-1)
    limits = torch.where(begun, -torch.inf, torch.inf)
    return log_probs.scatter_reduce_(2, grams[..., -1], limits, "amin")


def check_log_probs(log_probs: Tensor) -> None:
    """Every image has a caption, whose log-probability is a number.

    Blocking n-grams of a tiny vocabulary can leave no word to go on with before the minimum length.
    """
    if torch.isnan(log_probs).any():
        raise UserError(
            "the captioner predicts probabilities that are not numbers",
            remedy="decode with decoding.precision float32; if that does not help, its training has diverged",
        )
    if torch.isinf(log_probs).any():
        raise UserError(
            "no caption satisfies the settings: every word is blocked before min_length words are written",
            remedy="lower decoding.min_length or raise decoding.block_ngram",
        )
