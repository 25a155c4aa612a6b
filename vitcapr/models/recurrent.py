"""The states of an LSTM over padded captions."""

import torch
from torch import Tensor, nn

_CAPTIONS = 64
"""Read together on a CPU. Fewer have less padding, more use the cores better."""


def lstm_states(lstm: nn.LSTM, words: Tensor, lengths: Tensor, start: tuple[Tensor, Tensor] | None = None) -> Tensor:
    """The hidden state after every word, in float32 under autocast too: on a CPU, torch may lack a bfloat16 LSTM.

    On a CPU, captions of similar lengths are read together, so that little padding is: half of a batch can be padding.

    Args:
        lstm: one layer, one direction, batch first.
        words: (M, T, D).
        lengths: (M,) int64, the number of words of each caption, at least 1.
        start: h and c before the first word, (M, H) each; None for zeros.

    Returns:
        (M, T, H) float32. A state depends only on the words up to its own. States after the last word mean nothing.
    """
    with torch.autocast(words.device.type, enabled=False):
        words = words.float()
        given = None if start is None else (start[0].float(), start[1].float())
        if words.device.type != "cpu" or len(words) <= _CAPTIONS:
            return _states(lstm, words, given)
        by_length = lengths.argsort(stable=True)
        parts = []
        for part in by_length.split(_CAPTIONS):
            longest = int(lengths[part[-1]])
            begin = None if given is None else (given[0].index_select(0, part), given[1].index_select(0, part))
            states = _states(lstm, words[:, :longest].index_select(0, part), begin)
            parts.append(nn.functional.pad(states, (0, 0, 0, words.shape[1] - longest)))
        return torch.cat(parts).index_select(0, by_length.argsort())


def _states(lstm: nn.LSTM, words: Tensor, start: tuple[Tensor, Tensor] | None) -> Tensor:
    return lstm(words, None if start is None else (start[0][None], start[1][None]))[0]  # type: ignore[no-any-return]
