"""Heads: what each computes, written out; what nothing is learnt means; what is standardised by."""

import pytest
import torch
from torch import Tensor, nn

from vitcapr.models.dual_encoder import build_dual_encoder
from vitcapr.models.heads import RawHead, ResidualHead, Standardise, build_head

BATCH, WIDTH, SPACE = 4, 6, 3


def features(width: int = WIDTH) -> Tensor:
    return torch.randn(BATCH, width, generator=torch.Generator().manual_seed(0))


def test_raw_features_of_the_right_width_pass_through() -> None:
    head = build_head("none", WIDTH, WIDTH, 1, 0.5)
    assert torch.equal(head(features()), features())
    assert not list(head.parameters())
    assert not head.state_dict()


@pytest.mark.parametrize("width", [2, 3, 5, 40])
def test_raw_features_of_another_width_are_turned_and_not_learnt(width: int) -> None:
    head = RawHead(WIDTH, width)
    assert not list(head.parameters())
    turn = head.state_dict()["turn"]
    gram = turn.T @ turn if width <= WIDTH else turn @ turn.T
    torch.testing.assert_close(gram, torch.eye(len(gram)))
    if width >= WIDTH:
        torch.testing.assert_close(head(features()) @ head(features()).T, features() @ features().T)


def test_perceptron_is_linear_gelu_linear() -> None:
    head = build_head("mlp", WIDTH, SPACE, 5, dropout=0.4).eval()
    weights = head.state_dict()
    hidden = nn.functional.gelu(features() @ weights["widen.weight"].T + weights["widen.bias"])
    expected = hidden @ weights["narrow.weight"].T + weights["narrow.bias"]
    torch.testing.assert_close(head(features()), expected)


def test_a_gated_head_is_layer_norm_a_gate_and_linear() -> None:
    head = build_head("gated", WIDTH, SPACE, 5, dropout=0.4).eval()
    weights = {name: weight + 0.1 for name, weight in head.state_dict().items()}
    head.load_state_dict(weights)
    rows = 9 * features()
    normed = (rows - rows.mean(1, keepdim=True)) / (rows.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
    normed = normed * weights["norm.weight"] + weights["norm.bias"]
    gate = (normed @ weights["gate.weight"].T + weights["gate.bias"]).clamp(0, 6)
    hidden = gate * (normed @ weights["widen.weight"].T + weights["widen.bias"])
    torch.testing.assert_close(head(rows), hidden @ weights["narrow.weight"].T + weights["narrow.bias"])
    assert ((gate == 0) | (gate == 6)).any()


def test_a_deeper_residual_head_adds_blocks_to_the_first() -> None:
    torch.manual_seed(0)
    deep = ResidualHead(WIDTH, SPACE, 5, 0.2, depth=3).eval()
    first = ResidualHead(WIDTH, SPACE, 5, 0.2).eval()
    first.load_state_dict({name: value for name, value in deep.state_dict().items() if not name.startswith("blocks")})
    expected = first(features())
    for block in deep.blocks:
        hidden = block.widen(nn.functional.layer_norm(expected, (SPACE,), block.norm.weight, block.norm.bias))
        expected = expected + block.narrow(nn.functional.gelu(hidden))
    torch.testing.assert_close(deep(features()), expected)
    deep(features()).sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in deep.parameters())


def test_standardised_rows_have_mean_0_and_deviation_1() -> None:
    rows = 5 * features() + 3
    rows[:, 0] = 7.0
    module = Standardise(WIDTH)
    module.measure(iter(rows.half().split(3)))
    rows = rows.half().float()
    found = module(rows)
    torch.testing.assert_close(found.mean(0), torch.zeros(WIDTH), atol=1e-5, rtol=0)
    torch.testing.assert_close(found[:, 1:].std(0, correction=0), torch.ones(WIDTH - 1))
    assert found[:, 0].abs().max() < 1e-5
    assert set(module.state_dict()) == {"mean", "scale"}
    assert not list(module.parameters())


def test_a_model_keeps_what_it_is_standardised_by() -> None:
    architecture = {
        "embedding_dim": SPACE,
        "temperature": 0.1,
        "learn_temperature": False,
        "image": {"feature_dim": WIDTH, "head": "mlp", "standardise": True},
        "text": {"kind": "features", "feature_dim": WIDTH, "standardise": True},
    }
    one, other = build_dual_encoder(architecture).eval(), build_dual_encoder(architecture).eval()
    one.image.standardise.measure([2 * features() + 1])
    one.text.standardise.measure([3 * features()])
    other.load_state_dict(one.state_dict())
    assert torch.equal(other.embed_images({"cls": features()}), one.embed_images({"cls": features()}))
    assert torch.equal(other.embed_texts(features()), one.embed_texts(features()))
    assert not torch.allclose(one.image.standardise.mean, torch.zeros(WIDTH))
