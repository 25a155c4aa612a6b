"""What of a fine-tuned dual encoder is trained, and how fast; how outputs are pooled."""

from typing import Any

import torch
from transformers import BertConfig, BertModel, ViTConfig, ViTModel

from vitcapr.extensions.finetuning.finetuned_towers import (
    FinetunedImageTower,
    FinetunedTextTower,
    LanguageTowers,
    TowerTokens,
    layer_rates,
)
from vitcapr.models.dual_encoder_model import DualEncoder

WIDTH = 8


def vit() -> ViTModel:
    sizes = {"hidden_size": WIDTH, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 16}
    return ViTModel(ViTConfig(**sizes, image_size=16, patch_size=8), add_pooling_layer=False)


def bert(dropout: float = 0.0) -> BertModel:
    sizes: dict[str, Any] = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(**sizes, intermediate_size=16, vocab_size=30, hidden_dropout_prob=dropout)
    return BertModel(config, add_pooling_layer=False)


def finetuned(image_top: int | None, text_top: int | None, dropout: float = 0.0) -> DualEncoder:
    torch.manual_seed(0)
    image = FinetunedImageTower(vit(), WIDTH, 4, "cls", image_top, prefix=1)
    text = FinetunedTextTower(bert(dropout), WIDTH, 4, "mean", text_top)
    return DualEncoder(4, image, LanguageTowers({"en": text}), 0.1, False)


def embedded(model: DualEncoder, ids: torch.Tensor) -> torch.Tensor:
    inputs = {"ids": ids, "mask": (ids > 0).long()}
    return model.embed_texts([TowerTokens("en", torch.arange(len(ids)), inputs)])


def trained(tower: torch.nn.Module) -> set[str]:
    return {name for name, parameter in tower.named_parameters() if parameter.requires_grad}


def test_everything_nothing_or_the_upper_layers_of_an_encoder_are_trained() -> None:
    assert trained(finetuned(None, None)) == {name for name, _ in finetuned(None, None).named_parameters()}
    assert trained(finetuned(0, 0).image) == {"project.weight", "project.bias"}
    names = trained(finetuned(1, 1))
    assert all(
        name.startswith(("image.encoder.layers.2.", "image.encoder.layernorm", "image.project"))
        for name in names
        if name.startswith("image")
    )
    assert {name.split(".")[5] for name in names if ".encoder.layer." in name} == {"1"}
    assert not any("embeddings" in name for name in names)


def test_a_gradient_reaches_what_is_trained_and_nothing_else() -> None:
    model = finetuned(1, 1).train()
    ids = torch.tensor([[1, 2, 3], [4, 5, 0]])
    images = model.embed_images({"pixels": torch.randn(2, 3, 16, 16)})
    captions = embedded(model, ids)
    (images @ captions.T).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert (parameter.grad is not None) == parameter.requires_grad, name


def test_frozen_layers_have_no_dropout() -> None:
    model = finetuned(0, 0, dropout=0.5).train()
    ids = torch.tensor([[1, 2, 3]])
    once, again = (embedded(model, ids) for _ in range(2))
    torch.testing.assert_close(once, again)
    assert model.text["en"].training
    assert finetuned(0, 1, dropout=0.5).train().text["en"].encoder.encoder.layer[1].training


def test_each_layer_learns_slower_than_the_one_above() -> None:
    model = finetuned(None, 0)
    groups = layer_rates(model, 0.5)
    assert [scale for _, scale in groups] == [1.0, 0.5, 0.25, 0.125, 0.0625]
    placed = {id(parameter): scale for parameters, scale in groups for parameter in parameters}
    encoder: Any = model.image.encoder
    for part, scale in ((encoder.layers[2], 0.5), (encoder.embeddings, 0.0625), (encoder.layernorm, 1.0)):
        assert {placed[id(parameter)] for parameter in part.parameters()} == {scale}
    assert len(placed) == sum(parameter.requires_grad for parameter in model.parameters())


def test_padding_counts_for_nothing() -> None:
    model = finetuned(None, None).eval()
    short, long = torch.tensor([[1, 2]]), torch.tensor([[1, 2, 0, 0]])
    torch.testing.assert_close(embedded(model, short), embedded(model, long), atol=1e-5, rtol=1e-4)


def text_tower(encoder: BertModel, pool: Any = "cls", **options: Any) -> FinetunedTextTower:
    return FinetunedTextTower(encoder, WIDTH, None, pool, None, **options).eval()


def test_tags_start_at_nothing_and_are_trained() -> None:
    torch.manual_seed(0)
    encoder = bert()
    plain, tagged = text_tower(encoder), text_tower(encoder, tags=3)
    ids, tags = torch.tensor([[1, 2, 3]]), torch.tensor([[0, 1, 2]])
    mask = torch.ones_like(ids)
    torch.testing.assert_close(plain(ids, mask), tagged(ids, mask, tags))
    tagged(ids, mask, tags).square().sum().backward()
    assert tagged.tags.weight.grad.abs().sum(1).gt(0).all()


def test_a_title_of_weight_two_equals_the_title_twice() -> None:
    torch.manual_seed(0)
    encoder = bert().eval()
    encoder.embeddings.position_embeddings.weight.data.zero_()
    plain, weighted = text_tower(encoder), text_tower(encoder, title_weight=2.0)
    ids, titles = torch.tensor([[1, 2, 3, 0], [4, 5, 6, 7]]), torch.tensor([[0, 1, 0, 0], [0, 0, 0, 0]])
    found = weighted(ids, (ids > 0).long(), titles=titles)
    twice = torch.tensor([[1, 2, 2, 3]])
    torch.testing.assert_close(found[:1], plain(twice, torch.ones_like(twice)), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found[1:], plain(ids[1:], torch.ones_like(ids[1:])), atol=1e-5, rtol=1e-4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = weighted(ids, (ids > 0).long(), titles=titles)
    torch.testing.assert_close(rounded.float(), found, atol=0.1, rtol=0.1)


def test_token_types_reach_the_encoder() -> None:
    torch.manual_seed(0)
    encoder = bert()
    encoder.embeddings.token_type_embeddings.weight.data.normal_()
    plain, tower = text_tower(encoder, "mean"), text_tower(encoder, "mean", segments=True)
    ids, types = torch.tensor([[1, 2, 3]]), torch.tensor([[0, 0, 1]])
    mask, none = torch.ones_like(ids), torch.zeros_like(ids)
    assert (tower(ids, mask, types=types) - tower(ids, mask, types=none)).abs().max() > 0.01
    torch.testing.assert_close(plain(ids, mask, types=types), tower(ids, mask, types=none))
