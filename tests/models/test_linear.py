"""Products of words in bfloat16: few shapes, the same numbers."""

import pytest
import torch
from torch import Tensor, nn

from vitcapr.models.linear import WordLinear


@pytest.mark.parametrize("shape", [(0,), (1,), (128,), (130,), (3, 50), (4, 32)])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_a_linear_layer(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    ours = WordLinear(6, 5, bias=bias)
    plain = nn.Linear(6, 5, bias=bias)
    plain.load_state_dict(ours.state_dict())
    words = torch.randn(*shape, 6)

    def results(layer: nn.Linear) -> list[Tensor]:
        given = words.clone().requires_grad_()
        found = layer(given)
        found.float().square().sum().backward()
        return [found, *(each.grad for each in (given, *layer.parameters()) if each.grad is not None)]

    assert all(map(torch.equal, results(ours), results(plain)))
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(results(ours), results(plain), rtol=0.02, atol=0.02)


def test_in_bfloat16_the_number_of_rows_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, rows = nn.functional.linear, []

    def counted(input: Tensor, *rest: Tensor) -> Tensor:
        rows.append(len(input))
        return plain(input, *rest)

    monkeypatch.setattr(nn.functional, "linear", counted)
    layer = WordLinear(6, 5)
    with torch.autocast("cpu", torch.bfloat16):
        assert [len(layer(torch.randn(words, 6))) for words in (1, 127, 128, 129)] == [1, 127, 128, 129]
    assert rows == [128, 128, 128, 256]
