"""The text half of checkpoints of two halves, against transformers' own calls on the whole checkpoint."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import (
    AutoTokenizer,
    Blip2Config,
    Blip2ForConditionalGeneration,
    Blip2ForImageTextRetrieval,
    CLIPModel,
    SiglipModel,
    T5ForConditionalGeneration,
)

from tests.encoders.two_towers import CHECKPOINTS, ROOM, SIZE, TEXTS, load_text, t5_tokenizer
from vitcapr.errors import UserError


def parameters(model: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in CHECKPOINTS.items()}


def tokens(folder: Path, text: str, **options: object) -> dict[str, torch.Tensor]:
    found = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt", **options)
    return {name: found[name] for name in ("input_ids", "attention_mask")}


def one_by_one(encode: Callable[[str], torch.Tensor]) -> np.ndarray:
    with torch.inference_mode():
        return torch.stack([encode(text) for text in TEXTS]).numpy()


@pytest.mark.parametrize(("name", "whole"), [("clip", CLIPModel), ("siglip", SiglipModel)])
def test_aligned_is_get_text_features(checkpoints: dict[str, Path], name: str, whole: type) -> None:
    """SigLIP was trained on captions filled up to the full length, the filling attended to."""
    folder, model = checkpoints[name], whole.from_pretrained(checkpoints[name]).eval()
    options = {"truncation": True} if name == "clip" else {"padding": "max_length"}

    def encode(text: str) -> torch.Tensor:
        given = tokens(folder, text, max_length=ROOM, **options)
        if name == "siglip":
            del given["attention_mask"]
        return model.get_text_features(**given).pooler_output[0]

    expected = one_by_one(encode)
    np.testing.assert_allclose(load_text(folder, output="aligned").encode(TEXTS), expected, atol=1e-5)
    assert np.abs(expected[0] - expected[1]).max() > 1e-2


def test_blip2_aligned_is_its_contrastive_half(checkpoints: dict[str, Path]) -> None:
    folder = checkpoints["blip2_itm"]
    whole = Blip2ForImageTextRetrieval.from_pretrained(folder).eval()
    pixels = torch.zeros(1, 3, SIZE, SIZE)
    expected = one_by_one(lambda text: whole(pixels, **tokens(folder, text)).text_embeds[0])
    made = load_text(folder, output="aligned").encode(TEXTS)
    np.testing.assert_allclose(made, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("pool", ["mean", "cls", "last"])
def test_hidden_of_blip2_is_its_t5_encoder(checkpoints: dict[str, Path], pool: str) -> None:
    folder = checkpoints["blip2_t5"]
    encoder = Blip2ForConditionalGeneration.from_pretrained(folder).eval().language_model.get_encoder()

    def pooled(text: str) -> torch.Tensor:
        hidden = encoder(**tokens(folder, text)).last_hidden_state[0]
        assert tokens(folder, text)["input_ids"][0, -1] == t5_tokenizer().eos_token_id
        return {"mean": hidden.mean(0), "cls": hidden[0], "last": hidden[-1]}[pool]

    made = load_text(folder, pool)
    np.testing.assert_allclose(made.encode(TEXTS), one_by_one(pooled), atol=1e-5)
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


@pytest.mark.parametrize(
    ("name", "output", "message"),
    [
        ("blip2_t5", "aligned", "weights lack .* Salesforce/blip2-itm-vit-g"),
        ("blip2_itm", "hidden", r"language model of this BLIP-2 \(opt\) has no encoder"),
    ],
)
def test_what_a_checkpoint_does_not_have(checkpoints: dict[str, Path], name: str, output: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        load_text(checkpoints[name], output=output)
