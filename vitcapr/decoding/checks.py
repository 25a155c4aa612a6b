"""Checks of the arguments of a search."""

import torch
from torch import Tensor

from vitcapr.errors import UserError


def check_lengths(min_length: int, max_length: int) -> None:
    if min_length > max_length:
        raise UserError(
            f"decoding.min_length {min_length} is above decoding.max_length {max_length}",
            remedy="no caption is that long and that short; lower min_length",
        )


def check_found(log_probs: Tensor) -> None:
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
