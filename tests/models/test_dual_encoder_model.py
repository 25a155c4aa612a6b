"""Towers against one image and one caption at a time, heads against their formulas, the temperature and its bounds."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from vitcapr.models.dual_encoder_model import DualEncoder, build_dual_encoder
from vitcapr.models.projections import Standardise
from vitcapr.models.towers import AttentionPool, HeadTower, ImageTower, WordTower, build_head

IMAGES, PATCHES, WIDTH, SPACE = 3, 5, 6, 4


def images() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "cls": torch.randn(IMAGES, WIDTH, generator=generator),
        "patches": torch.randn(IMAGES, PATCHES, WIDTH, generator=generator),
    }


CAPTIONS = [[1, 5, 6, 2], [1, 7, 2], [1, 4, 4, 8, 9, 2], [1, 2]]


def padded(captions: list[list[int]], width: int) -> Tensor:
    return torch.tensor([caption + [0] * (width - len(caption)) for caption in captions])


def architecture(**changes: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "embedding_dim": SPACE,
        "temperature": 0.07,
        "learn_temperature": False,
        "image": {"feature_dim": WIDTH},
        "text": {"kind": "words", "vocabulary": 10, "word_dim": 3, "hidden_dim": 5},
    }
    return {**settings, **changes}


def build(**changes: Any) -> DualEncoder:
    torch.manual_seed(0)
    return build_dual_encoder(architecture(**changes)).eval()


def plain_states(tower: WordTower, caption: list[int]) -> tuple[Tensor, Tensor | None]:
    """The states after every word of one caption, (T, H), of torch's own LSTM each way; backwards in word order."""
    words = tower.embedding(torch.tensor(caption))
    forth = tower.forth(words[None])[0][0]
    return forth, None if tower.back is None else tower.back(words.flip(0)[None])[0][0].flip(0)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("pool", ["last", "mean", "max"])
def test_words_are_read_as_one_caption_at_a_time(pool: str, bidirectional: bool) -> None:
    torch.manual_seed(0)
    tower = WordTower(10, SPACE, 3, 5, bidirectional, pool, dropout=0.3).eval()  # type: ignore[arg-type]
    expected = []
    for caption in CAPTIONS:
        forth, back = plain_states(tower, caption)
        if pool == "last":
            parts = [forth[-1]] if back is None else [forth[-1], back[0]]
        else:
            both = forth if back is None else torch.cat([forth, back], dim=1)
            parts = [both.mean(0) if pool == "mean" else both.amax(0)]
        expected.append(tower.project(torch.cat(parts)))
    torch.testing.assert_close(tower(padded(CAPTIONS, 9)), torch.stack(expected))


def test_attention_pool_is_a_softmax_over_the_patches_for_every_query() -> None:
    torch.manual_seed(0)
    pool = AttentionPool(WIDTH, 2)
    patches = images()["patches"]
    expected = []
    for image in patches:
        for query in pool.queries.weight:
            weights = torch.exp(image @ query)
            expected.append((weights / weights.sum()) @ image)
    pooled = torch.stack(expected).view(IMAGES, 2 * WIDTH)
    torch.testing.assert_close(pool(patches), pooled)
    torch.testing.assert_close(pool(patches, mean=True), torch.cat([pooled, patches.mean(1)], dim=1))


@pytest.mark.parametrize("cls_dim", [None, 3, 0])
def test_what_each_image_tower_reads(cls_dim: int | None) -> None:
    features = images()
    features["cls"] = features["cls"][:, :cls_dim]
    torch.manual_seed(0)
    for pool, more in (
        ("cls", lambda _: []),
        ("cls_mean", lambda _: [features["patches"].mean(1)]),
        ("attention", lambda tower: [tower.attention(features["patches"])]),
        ("attention_mean", lambda tower: [tower.attention(features["patches"], mean=True)]),
    ):
        if cls_dim == 0 and pool.startswith("cls"):
            continue
        tower = ImageTower(WIDTH, SPACE, pool, queries=2, cls_dim=cls_dim)  # type: ignore[arg-type]
        assert tower.arrays == (("cls",) if cls_dim != 0 else ()) + (("patches",) if pool != "cls" else ())
        joined = torch.cat([features["cls"], *more(tower)], dim=1)
        torch.testing.assert_close(tower(features), tower.head.project(joined))  # type: ignore[operator]


def test_the_bag_of_words_is_a_mean_over_real_words_beside_the_feature() -> None:
    tower = HeadTower(feature_dim=2, vocabulary=7, embedding_dim=5, word_dim=3)
    features, tokens = torch.randn(2, 2), torch.tensor([[1, 4, 2, 0], [1, 2, 0, 0]])
    weights = tower.embedding.weight
    bags = torch.stack([weights[[1, 4, 2]].mean(0), weights[[1, 2]].mean(0)])
    torch.testing.assert_close(tower((features, tokens)), tower.head(torch.cat([features, bags], dim=1)))
    padded = torch.nn.functional.pad(tokens, (0, 3))
    torch.testing.assert_close(tower((features, padded)), tower((features, tokens)))
    assert tower((features[:0], tokens[:0])).shape == (0, 5)


def test_word_dropout_leaves_out_words_in_training_only() -> None:
    torch.manual_seed(0)
    tokens = torch.arange(1, 2001)[None]
    for tower, texts in (
        (HeadTower(5, vocabulary=2001, word_dim=3, word_dropout=0.3), tokens),
        (HeadTower(5, 2, 2001, word_dim=3, word_dropout=0.3), (torch.randn(1, 2), tokens)),
    ):
        tower.train()
        tower.head.eval()
        tower(texts).sum().backward()
        gradient = tower.embedding.weight.grad
        kept = (gradient != 0).any(dim=1)[1:]
        assert 0.66 < float(kept.float().mean()) < 0.74
        tower.eval()
        torch.testing.assert_close(tower(texts), tower(texts), rtol=0, atol=0)


@pytest.mark.parametrize("views", [1, 2])
def test_the_cosines_of_an_ensemble_are_the_means_of_its_members(views: int) -> None:
    ensemble = build(members=3)
    seen = [images()] * views
    captions = padded(CAPTIONS, 7)
    of_images, of_texts = ensemble.embed_augmented_views(seen), ensemble.embed_texts(captions)
    assert of_images.shape == (IMAGES, 3 * SPACE) == (IMAGES, ensemble.embedding_dim)
    torch.testing.assert_close(of_images.norm(dim=1), torch.ones(IMAGES))
    cosines = [one.embed_augmented_views(seen) @ one.embed_texts(captions).T for one in ensemble.members]
    assert not torch.allclose(cosines[0], cosines[1])
    torch.testing.assert_close(of_images @ of_texts.T, torch.stack(cosines).mean(0))


@pytest.mark.parametrize(("scale", "held"), [(1000.0, 0.01), (0.1, 1.0), (5.0, 0.2)])
def test_a_learned_temperature_is_held_between_its_bounds_and_keeps_its_gradient(scale: float, held: float) -> None:
    fixed = build(temperature=0.2)
    assert float(fixed.temperature()) == pytest.approx(0.2)
    assert "log_scale" in fixed.state_dict().keys() - dict(fixed.named_parameters()).keys()
    model = build(learn_temperature=True)
    with torch.no_grad():
        model.log_scale.fill_(math.log(scale))
    temperature = model.temperature()
    assert float(temperature.detach()) == pytest.approx(held)
    temperature.backward()
    assert float(model.log_scale.grad) == pytest.approx(-held)


BATCH = 4


def features(width: int = WIDTH) -> Tensor:
    return torch.randn(BATCH, width, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("width", [2, 3, 5, WIDTH, 40])
def test_raw_features_are_turned_to_another_width_and_not_learnt(width: int) -> None:
    head = build_head("none", WIDTH, width, 0.5)
    assert not list(head.parameters())
    if width == WIDTH:
        assert torch.equal(head(features()), features())
        assert not head.state_dict()
        return
    turn = head.state_dict()["turn"]
    gram = turn.T @ turn if width <= WIDTH else turn @ turn.T
    torch.testing.assert_close(gram, torch.eye(len(gram)))
    if width > WIDTH:
        torch.testing.assert_close(head(features()) @ head(features()).T, features() @ features().T)


def test_perceptron_is_linear_gelu_linear() -> None:
    head = build_head({"kind": "mlp", "hidden_dim": 5}, WIDTH, SPACE, dropout=0.4).eval()
    weights = head.state_dict()
    hidden = nn.functional.gelu(features() @ weights["widen.weight"].T + weights["widen.bias"])
    expected = hidden @ weights["narrow.weight"].T + weights["narrow.bias"]
    torch.testing.assert_close(head(features()), expected)


def test_a_gated_head_is_layer_norm_a_gate_and_linear() -> None:
    head = build_head({"kind": "gated", "hidden_dim": 5}, WIDTH, SPACE, dropout=0.4).eval()
    weights = {name: weight + 0.1 for name, weight in head.state_dict().items()}
    head.load_state_dict(weights)
    rows = 9 * features()
    normed = (rows - rows.mean(1, keepdim=True)) / (rows.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
    normed = normed * weights["norm.weight"] + weights["norm.bias"]
    gate = (normed @ weights["gate.weight"].T + weights["gate.bias"]).clamp(0, 6)
    hidden = gate * (normed @ weights["widen.weight"].T + weights["widen.bias"])
    torch.testing.assert_close(head(rows), hidden @ weights["narrow.weight"].T + weights["narrow.bias"])
    assert ((gate == 0) | (gate == 6)).any()


def test_a_residual_head_adds_perceptrons_to_a_linear_layer() -> None:
    torch.manual_seed(0)
    head = build_head({"kind": "residual", "hidden_dim": 5, "depth": 3}, WIDTH, SPACE, 0.5).eval()
    normed = nn.functional.layer_norm(features(), (WIDTH,))
    expected = head.project(normed) + head.narrow(nn.functional.gelu(head.widen(normed)))
    for block in head.blocks:
        hidden = block.widen(nn.functional.layer_norm(expected, (SPACE,), block.norm.weight, block.norm.bias))
        expected = expected + block.narrow(nn.functional.gelu(hidden))
    torch.testing.assert_close(head(features()), expected)
    head(features()).sum().backward()
    assert all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in head.parameters())
    head.train()
    assert not torch.equal(head(features()), head(features()))


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
