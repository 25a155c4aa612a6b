"""The states of an LSTM over padded captions."""

import torch
from torch import Tensor, nn


def lstm_states(lstm: nn.LSTM, words: Tensor, start: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """Return the hidden state after every word, in float32 even under autocast.

    On a CPU, torch may lack a bfloat16 LSTM.

    Args:
        lstm: one layer, one direction, batch first.
        words: (M, T, D).
        start: h and c before the first word, (M, H) each; None for zeros.

    Returns:
        (M, T, H) float32. A state depends only on the words up to its own, so padding at the end changes none of them.
    """
    with torch.autocast(words.device.type, enabled=False):
        given = None if start is None else (start[0].float()[None], start[1].float()[None])
        return lstm(words.float(), given)[0]  # type: ignore[no-any-return]
