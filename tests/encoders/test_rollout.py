import pytest
import torch

from tests.encoders.test_backbones import PREFIXES, random_model
from vitcapr.encoders.image_towers import Backbone
from vitcapr.encoders.rollout import AttendingBackbone, roll_out


def test_two_layers_by_hand():
    # Heads that differ, whose mean is [[0, 1, 0], [0, 1, 0], [1, 0, 0]]; then one that looks at the last token.
    heads = [
        [[0, 1, 0], [0, 1, 0], [1, 0, 0]],
        [[0, 1, 0], [0, 1, 0], [1, 0, 0]],
    ]
    first = torch.tensor([heads], dtype=torch.float32)
    second = torch.tensor([[[[0, 0, 1.0]] * 3, [[0, 1.0, 0]] * 3]])
    # (A + I) / 2: [[.5, .5, 0], [0, 1, 0], [.5, 0, .5]] and, for CLS, [.5, .25, .25]; their product's first row is
    # [.375, .5, .125], of which the patches have 0.8 and 0.2.
    assert roll_out([first, second], prefix=1)[0].tolist() == pytest.approx([0.8, 0.2])
    assert roll_out([first, second], prefix=2)[0].tolist() == [1]


@pytest.mark.parametrize("family", PREFIXES)
def test_every_family_returns_its_attention_and_the_same_features(tmp_path, family, save_checkpoint):
    folder = save_checkpoint(random_model(family), tmp_path)
    backbone = AttendingBackbone(folder, (32, 32), torch.float32)
    pixels = torch.randn(2, 3, 32, 32)
    layers = backbone.attentions(pixels)
    tokens = backbone.prefix + 16
    assert [tuple(layer.shape) for layer in layers] == [(2, 2, tokens, tokens)] * 2
    assert torch.stack(layers).sum(dim=-1) == pytest.approx(torch.ones(2, 2, 2, tokens).numpy(), abs=1e-5)
    rolled = backbone.roll_out(pixels)
    assert rolled.shape == (2, 4, 4)
    assert rolled.sum(dim=(1, 2)).tolist() == pytest.approx([1, 1])
    # Written out token by token.
    flow = torch.eye(tokens)
    for layer in layers:
        flow = (layer[1].mean(dim=0) + torch.eye(tokens)) / 2 @ flow
    expected = flow[0, backbone.prefix :] / flow[0, backbone.prefix :].sum()
    torch.testing.assert_close(rolled[1].flatten(), expected)
    alike = Backbone(folder, (32, 32), torch.float32).features(pixels)
    torch.testing.assert_close(backbone.features(pixels), alike, rtol=1e-4, atol=1e-4)
