"""An LSTM over captions of many lengths."""

import pytest
import torch
from torch import Tensor, nn

from vitcapr.models.recurrent import lstm_states


@pytest.mark.parametrize("captions", [1, 64, 65, 150])
@pytest.mark.parametrize("started", [False, True])
def test_states_and_gradients_are_those_of_the_plain_lstm(captions: int, started: bool) -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(3, 5, batch_first=True)
    words = torch.randn(captions, 11, 3)
    lengths = torch.randint(1, 12, (captions,))
    start = (torch.randn(captions, 5), torch.randn(captions, 5)) if started else None
    real = torch.arange(11) < lengths[:, None]

    def gradients(states: Tensor) -> list[Tensor]:
        lstm.zero_grad()
        states[real].square().sum().backward()
        return [weight.grad.clone() for weight in lstm.parameters() if weight.grad is not None]

    plain = lstm(words, None if start is None else (start[0][None], start[1][None]))[0]
    expected = gradients(plain)
    states = lstm_states(lstm, words, lengths, start)
    assert states.shape == plain.shape
    torch.testing.assert_close(states[real], plain[real])
    torch.testing.assert_close(gradients(states), expected)
