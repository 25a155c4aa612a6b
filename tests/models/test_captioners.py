"""The captioners: one word at a time equals all at once, and nothing leaks from padding or from the future."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.models.untrained import configured, untrained
from vitcapr.config.experiment import AnyCaptionerConfig
from vitcapr.config.reading import choices_of, sections_in
from vitcapr.loader import part_names
from vitcapr.models.interface import Captioner

VOCABULARY, FEATURES, PATCHES = 11, 8, 4
LSTM = {"embedding_dim": 5, "hidden_dim": 6}
ATTENTION = {"kind": "patch_attention", **LSTM, "attention_dim": 4}
ARCHITECTURES: list[dict[str, Any]] = [
    {"kind": "baseline", **LSTM},
    ATTENTION,
    {**ATTENTION, "scoring": "relu"},
    {**ATTENTION, "scoring": "bilinear"},
    {**ATTENTION, "init_from_cls": True, "output_dim": 7},
    {**ATTENTION, "output_dim": 7, "output_activation": "relu"},
    {"kind": "transformer", "embedding_dim": 8, "hidden_dim": 6, "layers": 3, "heads": 2},
    {"kind": "placed_transformer", "embedding_dim": 8, "hidden_dim": 6, "layers": 1, "heads": 2, "places": PATCHES},
    {"kind": "language_model"},
    {"kind": "language_model", "prefix": {"grid": 1}, "network": "gpt2"},
    {"kind": "language_model", "prefix": {"grid": 0}},
]
NAMES = ["baseline", "tanh", "relu", "bilinear", "deep", "two dense", "transformer", "placed"]
NAMES += ["llama", "gpt2", "cls alone"]


@pytest.fixture(params=ARCHITECTURES, ids=NAMES)
def model(request: pytest.FixtureRequest) -> Captioner:
    return untrained(vocabulary=VOCABULARY, feature_dim=FEATURES, **request.param).eval()


@pytest.fixture
def features() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return {
        "patches": torch.randn(2, PATCHES, FEATURES, generator=generator),
        "cls": torch.randn(2, FEATURES, generator=generator),
    }


TOKENS = torch.tensor([[1, 5, 6, 7], [1, 8, 0, 0], [1, 9, 4, 0]])
IMAGES = torch.tensor([0, 0, 1])


def test_every_architecture_is_configured_built_and_tested() -> None:
    names = {name for section in sections_in(AnyCaptionerConfig) for name in choices_of(section)}
    assert names == set(part_names("CAPTIONER")) == {each["kind"] for each in ARCHITECTURES}


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=NAMES)
@torch.no_grad()
def test_the_configuration_says_what_the_model_takes_and_gives(
    architecture: dict[str, Any], features: dict[str, Tensor]
) -> None:
    """Else a captioner that attends would be decoded without a figure of its attention."""
    chosen = configured(**{key: value for key, value in architecture.items() if key != "network"})
    model = untrained(vocabulary=VOCABULARY, feature_dim=FEATURES, **architecture).eval()
    memory = model.encode({name: features[name] for name in model.arrays})
    attention = model.step(memory, model.initial_state(memory), torch.full((2, 1), 1)).attention
    assert chosen.attends == model.attends == ("patches" in model.arrays) == (attention is not None)
    assert chosen.arrays == model.arrays


@pytest.mark.parametrize(
    "architecture",
    [{**ATTENTION, "init_from_cls": True}, *({"kind": "language_model", "prefix": {"grid": g}} for g in (1, None))],
)
def test_cls_has_its_own_width(architecture: dict[str, Any], features: dict[str, Tensor]) -> None:
    model = untrained(vocabulary=VOCABULARY, feature_dim=FEATURES, cls_dim=3, **architecture).eval()
    cls = features["cls"][:, :3].clone().requires_grad_()
    model(model.encode({**features, "cls": cls}), TOKENS, TOKENS != 0, IMAGES).sum().backward()
    assert cls.grad is not None
    assert cls.grad.abs().sum() > 0


@torch.no_grad()
def test_all_words_at_once_equal_word_by_word(model: Captioner, features: dict[str, Tensor]) -> None:
    mask = TOKENS != 0
    with torch.enable_grad():
        together = model(model.encode(features), TOKENS, mask, IMAGES).detach()
    memory = model.encode(features)
    torch.testing.assert_close(model(memory, TOKENS, mask, IMAGES), together, rtol=1e-4, atol=1e-5)
    assert together.shape == (int(mask.sum()), VOCABULARY)
    apart = []
    for caption, image in zip(TOKENS, IMAGES, strict=True):
        own = {name: tensor[image : image + 1] for name, tensor in memory.items()}
        state = model.initial_state(own)
        for token in caption[caption != 0]:
            step = model.step(own, state, token.view(1, 1))
            state = step.state
            apart.append(step.logits[0, 0])
            if step.attention is not None:
                torch.testing.assert_close(step.attention.sum(-1), torch.ones(1, 1))
    torch.testing.assert_close(together, torch.stack(apart), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_hypotheses_of_an_image_do_not_affect_each_other(model: Captioner, features: dict[str, Tensor]) -> None:
    memory = model.encode(features)
    state = model.initial_state(memory)
    wide = {name: tensor.expand(-1, 3, *tensor.shape[2:]) for name, tensor in state.items()}
    tokens = torch.tensor([[4, 5, 6], [7, 8, 9]])
    together = model.step(memory, wide, tokens)
    for hypothesis in range(3):
        alone = model.step(memory, state, tokens[:, hypothesis : hypothesis + 1])
        torch.testing.assert_close(together.logits[:, hypothesis], alone.logits[:, 0], rtol=1e-4, atol=1e-5)


def test_the_image_matters_and_the_future_does_not(model: Captioner, features: dict[str, Tensor]) -> None:
    mask = torch.ones(1, 3, dtype=torch.bool)
    image = torch.tensor([0])
    logits = model(model.encode(features), torch.tensor([[1, 5, 6]]), mask, image)
    changed = model(model.encode(features), torch.tensor([[1, 5, 9]]), mask, image)
    torch.testing.assert_close(logits[:2], changed[:2])
    assert not torch.allclose(logits[2], changed[2])
    other = model(model.encode(features), torch.tensor([[1, 5, 6]]), mask, torch.tensor([1]))
    assert not torch.allclose(logits, other)


def test_every_weight_is_trained(model: Captioner, features: dict[str, Tensor]) -> None:
    model.train()
    logits = model(model.encode(features), TOKENS, TOKENS != 0, IMAGES)
    torch.nn.functional.cross_entropy(logits, torch.arange(len(logits))).backward()
    idle = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert idle == []


@torch.no_grad()
def test_the_decoder_of_flickr8k_ends_in_two_dense_layers() -> None:
    """ViTCap-R, III-E.1: ReLU, then the vocabulary. The hidden units are context and state, weighed by hand."""
    settings = {"embedding_dim": 5, "hidden_dim": 2, "output_dim": 2, "output_activation": "relu"}
    model = untrained("patch_attention", VOCABULARY, FEATURES, **settings).eval()
    model.output.weight.copy_(torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, -1]]))
    model.output.bias.zero_()
    model.words.weight.zero_()
    model.words.weight[3] = torch.tensor([1.0, 10.0])
    model.words.bias.zero_()
    logits = model._predict(torch.tensor([[2.0, 9.0], [-2.0, 9.0]]), torch.tensor([[9.0, 3.0], [9.0, -3.0]]))
    assert logits[:, 3].tolist() == [2.0, 30.0]
    assert not logits[:, :3].any()


@torch.no_grad()
def test_the_transformer_reads_words_with_sinusoids() -> None:
    """Words times the root of the width, plus sines and cosines: at place 0 nothing and one."""
    model = untrained("transformer", VOCABULARY, FEATURES, embedding_dim=4, heads=2).eval()
    read = model._read(torch.tensor([3, 3]), torch.tensor([0, 2]))
    places = torch.tensor([[0, 0, 1, 1], [math.sin(2), math.sin(0.02), math.cos(2), math.cos(0.02)]])
    assert torch.allclose(read, 2 * model.words.weight[3] + places, atol=1e-6)
