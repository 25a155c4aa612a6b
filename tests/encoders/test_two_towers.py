"""Each half of checkpoints of two halves, against transformers' own calls on the whole checkpoint."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import (
    AutoTokenizer,
    Blip2Config,
    Blip2ForConditionalGeneration,
    Blip2ForImageTextRetrieval,
    Blip2Model,
    CLIPModel,
    SiglipModel,
    T5ForConditionalGeneration,
)

from tests.checkpoints import Experiment
from tests.encoders.two_towers import CHECKPOINTS, QUERIES, ROOM, SIZE, TEXTS, clip, load_text, t5_tokenizer
from vitcapr.encoders.image_encoders import load_image_encoder
from vitcapr.encoders.image_recipe import open_like
from vitcapr.errors import UserError

WHOLE = {"clip": CLIPModel, "siglip": SiglipModel, "blip2_t5": Blip2ForConditionalGeneration}


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in CHECKPOINTS.items()}


def load(folder: Path, size: int = SIZE, dtype: torch.dtype = torch.float32, **options: str) -> Any:
    return load_image_encoder(folder, size=(size, size), dtype=dtype, device=torch.device("cpu"), **options)  # type: ignore[arg-type]


def pixels(size: int = SIZE) -> torch.Tensor:
    return torch.randn(3, 3, size, size, generator=torch.Generator().manual_seed(1))


def parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def tokens(folder: Path, text: str, **options: object) -> dict[str, torch.Tensor]:
    found = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt", **options)
    return {name: found[name] for name in ("input_ids", "attention_mask")}


def one_by_one(encode: Callable[[str], torch.Tensor]) -> np.ndarray:
    with torch.inference_mode():
        return torch.stack([encode(text) for text in TEXTS]).numpy()


@pytest.mark.parametrize("name", ["clip", "siglip"])
def test_aligned_is_get_image_features_and_get_text_features(checkpoints: dict[str, Path], name: str) -> None:
    """SigLIP was trained on captions filled up to the full length, the filling attended to."""
    folder = checkpoints[name]
    tower, model = load(folder, output="aligned"), WHOLE[name].from_pretrained(folder).eval()
    with torch.inference_mode():
        expected = model.get_image_features(pixels()).pooler_output
    torch.testing.assert_close(tower.features(pixels())["cls"], expected, rtol=0, atol=1e-5)
    assert (tower.shapes, tower.grid) == ({"cls": (expected.shape[1],)}, (0, 0))
    options = {"truncation": True} if name == "clip" else {"padding": "max_length"}

    def encode(text: str) -> torch.Tensor:
        given = tokens(folder, text, max_length=ROOM, **options)
        if name == "siglip":
            del given["attention_mask"]
        return model.get_text_features(**given).pooler_output[0]

    vectors = one_by_one(encode)
    np.testing.assert_allclose(load_text(folder, output="aligned").encode(TEXTS), vectors, atol=1e-5)
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-2


@pytest.mark.parametrize("name", WHOLE)
def test_hidden_is_the_vision_model(checkpoints: dict[str, Path], name: str) -> None:
    tower = load(checkpoints[name])
    with torch.inference_mode():
        own = WHOLE[name].from_pretrained(checkpoints[name]).eval().vision_model(pixels())
    made = tower.features(pixels())
    first = 0 if name == "siglip" else 1
    torch.testing.assert_close(made["patches"], own.last_hidden_state[:, first:], rtol=0, atol=1e-5)
    cls = own.pooler_output if name == "siglip" else own.last_hidden_state[:, 0]
    torch.testing.assert_close(made["cls"], cls, rtol=0, atol=1e-5)
    assert tower.grid == (2, 2)
    assert tower.shapes == {"patches": (4, 8), "cls": (8,)}


def test_qformer_tokens_and_their_pool(checkpoints: dict[str, Path]) -> None:
    with torch.inference_mode():
        expected = Blip2Model.from_pretrained(checkpoints["blip2_t5"]).eval().get_qformer_features(pixels())
    for pool, pooled in (("mean", expected.mean(1)), ("max", expected.amax(1)), ("first", expected[:, 0])):
        tower = load(checkpoints["blip2_t5"], output="qformer", pool=pool)
        made = tower.features(pixels())
        torch.testing.assert_close(made["patches"], expected, rtol=0, atol=1e-5)
        torch.testing.assert_close(made["cls"], pooled, rtol=0, atol=1e-5)
        assert (tower.shapes, tower.grid) == ({"patches": (QUERIES, 8), "cls": (8,)}, (0, 0))


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


def test_blip2_aligned_is_its_contrastive_half(checkpoints: dict[str, Path]) -> None:
    folder = checkpoints["blip2_itm"]
    whole = Blip2ForImageTextRetrieval.from_pretrained(folder).eval()
    pixels = torch.zeros(1, 3, SIZE, SIZE)
    expected = one_by_one(lambda text: whole(pixels, **tokens(folder, text)).text_embeds[0])
    made = load_text(folder, output="aligned").encode(TEXTS)
    np.testing.assert_allclose(made, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "options", "shapes"),
    [
        ("blip2_t5", {"output": "qformer", "pool": "max"}, {"cls": (8,), "patches": (QUERIES, 8)}),
        ("blip2_itm", {"output": "aligned"}, {"cls": (6,), "patches": (QUERIES, 6)}),
        ("clip", {"output": "aligned", "mirror": True}, {"cls": (6,)}),
    ],
)
def test_a_photograph_alone_has_the_features_of_the_store(
    checkpoints: dict[str, Path], experiment: Experiment, name: str, options: dict[str, Any], shapes: dict[str, Any]
) -> None:
    store = replace(experiment, backbone=checkpoints[name]).run(store_dtype="float32", **options)
    assert {array: values.shape[1:] for array, values in store.items()} == shapes
    assert (store.grid, store.attributes["output"]) == ((0, 0), options["output"])
    log = (experiment.root / "extract.log").read_text()
    assert "peak memory " in log
    assert re.search(r"waited in [\d.]+ s: \d{1,3}% for input, \d{1,3}% for disk, ", log)
    assert f"patches {QUERIES} x {shapes['cls'][0]}" in log or "cls 6, " in log
    encoder = open_like(store.attributes, torch.device("cpu"), str(checkpoints[name]))
    files = [experiment.root / "data/pictures" / f"bild_{store.image_ids[row]}.png" for row in (7, 2)]
    for array, values in encoder.encode([Image.open(file).convert("RGB") for file in files]).items():
        np.testing.assert_allclose(values.numpy(), store[array][[7, 2]], atol=1e-5)


@pytest.mark.parametrize(("name", "output"), [("clip", "aligned"), ("siglip", "aligned"), ("blip2_t5", "qformer")])
def test_another_size_interpolates_the_positions(checkpoints: dict[str, Path], name: str, output: str) -> None:
    tower = load(checkpoints[name], 24, output=output)
    assert tower.features(pixels(24))["cls"].shape == (3, *tower.shapes["cls"])
    with pytest.raises(UserError, match="do not divide into patches"):
        load(checkpoints[name], 20, output=output)


@pytest.mark.parametrize(("name", "output"), [("siglip", "hidden"), ("blip2_itm", "aligned")])
def test_bfloat16_comes_close(checkpoints: dict[str, Path], name: str, output: str) -> None:
    exact = load(checkpoints[name], output=output).features(pixels())
    tower = load(checkpoints[name], dtype=torch.bfloat16, output=output)
    assert {parameter.dtype for parameter in tower.model.parameters()} == {torch.bfloat16}
    for array, values in tower.features(pixels().bfloat16()).items():
        assert torch.cosine_similarity(values.float(), exact[array], dim=-1).min() > 0.97


@pytest.mark.parametrize(
    ("read", "name", "options", "message"),
    [
        (
            load,
            "clip",
            {"output": "qformer"},
            "set output",
        ),
        (load, "clip", {"kind": "cnn"}, r"of kind image-text \(clip\), not cnn"),
        (load, "blip2_t5", {"output": "aligned"}, "weights lack 2 tensors.*Salesforce/blip2-itm-vit-g"),
        (load_text, "blip2_t5", {"output": "aligned"}, "weights lack .* Salesforce/blip2-itm-vit-g"),
        (load_text, "blip2_itm", {"output": "hidden"}, r"language model of this BLIP-2 \(opt\) has no encoder"),
    ],
)
def test_what_a_checkpoint_does_not_have(
    checkpoints: dict[str, Path], read: Callable[..., Any], name: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        read(checkpoints[name], **options)


def test_shards_and_no_text(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    """Of a checkpoint in shards, the image half; the text half is not in memory."""
    folder = clip(tmp_path / "shards", max_shard_size="2KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 3
    tower, same = load(folder, output="aligned"), load(checkpoints["clip"], output="aligned")
    torch.testing.assert_close(tower.features(pixels()), same.features(pixels()))
    assert not any("token_embedding" in name for name, _ in tower.model.named_parameters())


def test_hidden_of_blip2_is_its_t5_encoder(checkpoints: dict[str, Path]) -> None:
    folder = checkpoints["blip2_t5"]
    encoder = Blip2ForConditionalGeneration.from_pretrained(folder).eval().language_model.get_encoder()

    def pooled(text: str) -> torch.Tensor:
        hidden = encoder(**tokens(folder, text)).last_hidden_state[0]
        assert tokens(folder, text)["input_ids"][0, -1] == t5_tokenizer().eos_token_id
        return torch.stack([hidden.mean(0), hidden[0], hidden[-1]])

    expected = one_by_one(pooled)
    for number, pool in enumerate(("mean", "cls", "last")):
        made = load_text(folder, pool)
        np.testing.assert_allclose(made.encode(TEXTS), expected[:, number], atol=1e-5)
        assert parameters(made.model) == parameters(encoder), "neither images nor a decoder are in memory"


def test_a_plain_t5_is_loaded_without_its_decoder(checkpoints: dict[str, Path], tmp_path: Path) -> None:
    language = Blip2Config.from_pretrained(checkpoints["blip2_t5"]).text_config
    whole = T5ForConditionalGeneration(language).eval()
    whole.save_pretrained(tmp_path)
    t5_tokenizer().save_pretrained(tmp_path)
    encoder = load_text(tmp_path)
    expected = one_by_one(lambda text: whole.get_encoder()(**tokens(tmp_path, text)).last_hidden_state[0].mean(0))
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)
    assert parameters(encoder.model) == parameters(whole.get_encoder())
