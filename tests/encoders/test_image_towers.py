"""The image half of checkpoints of two halves, against transformers' own calls on the whole checkpoint."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import (
    Blip2ForConditionalGeneration,
    Blip2ForImageTextRetrieval,
    Blip2Model,
    CLIPModel,
    SiglipModel,
)

from tests.encoders.two_towers import CHECKPOINTS, QUERIES, SIZE, clip, siglip
from vitcapr.encoders.base import ImageEncoder
from vitcapr.encoders.image_encoders import load_image_encoder
from vitcapr.errors import UserError


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in CHECKPOINTS.items()}


def load(folder: Path, size: int = SIZE, dtype: torch.dtype = torch.float32, **options: str) -> ImageEncoder:
    return load_image_encoder(folder, size=(size, size), dtype=dtype, device=torch.device("cpu"), **options)  # type: ignore[arg-type]


def pixels(size: int = SIZE) -> torch.Tensor:
    return torch.randn(3, 3, size, size, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("name", "whole"), [("clip", CLIPModel), ("siglip", SiglipModel)])
def test_aligned_is_get_image_features(checkpoints: dict[str, Path], name: str, whole: type) -> None:
    tower = load(checkpoints[name], output="aligned")
    with torch.inference_mode():
        expected = whole.from_pretrained(checkpoints[name]).eval().get_image_features(pixels()).pooler_output
    made = tower.features(pixels())
    torch.testing.assert_close(made["cls"], expected, rtol=0, atol=1e-5)
    assert tower.shapes == {"cls": (expected.shape[1],)}
    assert tower.grid == (0, 0)


@pytest.mark.parametrize(
    ("name", "whole"), [("clip", CLIPModel), ("siglip", SiglipModel), ("blip2_t5", Blip2ForConditionalGeneration)]
)
def test_hidden_is_the_vision_model(checkpoints: dict[str, Path], name: str, whole: type) -> None:
    tower = load(checkpoints[name])
    with torch.inference_mode():
        own = whole.from_pretrained(checkpoints[name]).eval().vision_model(pixels())
    made = tower.features(pixels())
    first = 0 if name == "siglip" else 1
    torch.testing.assert_close(made["patches"], own.last_hidden_state[:, first:], rtol=0, atol=1e-5)
    cls = own.pooler_output if name == "siglip" else own.last_hidden_state[:, 0]
    torch.testing.assert_close(made["cls"], cls, rtol=0, atol=1e-5)
    assert tower.grid == (2, 2)
    assert tower.shapes == {"patches": (4, 8), "cls": (8,)}


@pytest.mark.parametrize("pool", ["mean", "max", "first"])
def test_qformer_tokens_and_their_pool(checkpoints: dict[str, Path], pool: str) -> None:
    tower = load(checkpoints["blip2_t5"], output="qformer", pool=pool)
    with torch.inference_mode():
        expected = Blip2Model.from_pretrained(checkpoints["blip2_t5"]).eval().get_qformer_features(pixels())
    made = tower.features(pixels())
    torch.testing.assert_close(made["patches"], expected, rtol=0, atol=1e-5)
    pooled = {"mean": expected.mean(1), "max": expected.max(1).values, "first": expected[:, 0]}[pool]
    torch.testing.assert_close(made["cls"], pooled, rtol=0, atol=1e-5)
    assert tower.shapes == {"patches": (QUERIES, 8), "cls": (8,)}
    assert tower.grid == (0, 0)


def test_aligned_of_blip2_is_its_contrastive_half(checkpoints: dict[str, Path]) -> None:
    """Its own similarity, the greatest over the tokens, can be had from ``patches``; ``cls`` is their mean."""
    tower = load(checkpoints["blip2_itm"], output="aligned")
    whole = Blip2ForImageTextRetrieval.from_pretrained(checkpoints["blip2_itm"]).eval()
    ids = torch.tensor([[2, 5, 6, 3], [2, 7, 8, 3], [2, 9, 3, 0]])
    mask = (ids != 0).long()
    with torch.inference_mode():
        own = whole(pixels(), ids, mask, use_image_text_matching_head=False)
    made = tower.features(pixels())
    torch.testing.assert_close(made["patches"], own.image_embeds, rtol=0, atol=1e-5)
    torch.testing.assert_close(made["cls"], own.image_embeds.mean(1), rtol=0, atol=1e-5)
    similarity = torch.einsum("iqe,te->iqt", made["patches"], own.text_embeds).amax(1)
    torch.testing.assert_close(similarity, own.logits_per_image, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("name", "output"), [("clip", "aligned"), ("siglip", "aligned"), ("blip2_t5", "qformer")])
def test_another_size_interpolates_the_positions(checkpoints: dict[str, Path], name: str, output: str) -> None:
    tower = load(checkpoints[name], 24, output=output)
    assert tower.features(pixels(24))["cls"].shape == (3, *tower.shapes["cls"])
    with pytest.raises(UserError, match="do not divide into patches"):
        load(checkpoints[name], 20, output=output)


@pytest.mark.parametrize(
    ("name", "output"), [("clip", "aligned"), ("siglip", "hidden"), ("blip2_t5", "qformer"), ("blip2_itm", "aligned")]
)
def test_bfloat16_comes_close(checkpoints: dict[str, Path], name: str, output: str) -> None:
    exact = load(checkpoints[name], output=output).features(pixels())
    tower = load(checkpoints[name], dtype=torch.bfloat16, output=output)
    assert {parameter.dtype for parameter in tower.model.parameters()} == {torch.bfloat16}
    for array, values in tower.features(pixels().bfloat16()).items():
        assert torch.cosine_similarity(values.float(), exact[array], dim=-1).min() > 0.97


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("clip", {"output": "qformer"}, "kind clip .* no output 'qformer'; set output to hidden or aligned|set output"),
        ("clip", {"kind": "cnn"}, r"of kind image-text \(clip\), not cnn"),
        ("blip2_t5", {"output": "aligned"}, "weights lack 2 tensors.*Salesforce/blip2-itm-vit-g"),
    ],
)
def test_what_a_checkpoint_does_not_have(
    checkpoints: dict[str, Path], name: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        load(checkpoints[name], **options)


@pytest.mark.parametrize("make", [clip, siglip])
def test_shards_and_no_text(tmp_path: Path, make: Callable[..., Path]) -> None:
    """Of a checkpoint in shards, the image half; the text half is not in memory."""
    whole = make(tmp_path / "whole")
    folder = make(tmp_path / "shards", max_shard_size="2KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 3
    tower, same = load(folder, output="aligned"), load(whole, output="aligned")
    torch.testing.assert_close(tower.features(pixels()), same.features(pixels()))
    assert not any("token_embedding" in name for name, _ in tower.model.named_parameters())
