"""A caption as a sequence of word numbers, with its log-probabilities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


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
