"""Readers of other libraries, against these libraries alone. Skipped where a library is not installed."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file

from tests.checkpoints import save_bert
from vitcapr.encoders import checkpoint_kinds
from vitcapr.encoders.checkpoint_kinds import library
from vitcapr.encoders.image_encoders import configured_image_size, load_image_encoder
from vitcapr.encoders.preprocess import read_preprocessing
from vitcapr.encoders.text_encoders import TextRecipe
from vitcapr.errors import UserError
from vitcapr.pipeline.fingerprint import fingerprint
from vitcapr.pipeline.stage import find_stage
from vitcapr.stages.extract_text import ExtractTextSettings

CPU = torch.device("cpu")
TEXTS = ["A dog runs on the grass .", "cat", "the cats sit", "a red red red dog runs and sits on a red cat ."]
WORDS = ["a", "dog", "cat", "runs", "sits", "on", "the", "grass", "##s", "red", ".", "query", "passage", ":"]


def noise() -> list[Image.Image]:
    generator = np.random.default_rng(0)
    sizes = [(71, 50), (50, 71), (64, 64), (97, 40)]
    return [Image.fromarray(generator.integers(0, 256, (h, w, 3), dtype=np.uint8)) for w, h in sizes]


def redrawn(model: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model.eval()


def save_timm(folder: Path, name: str, **arguments: Any) -> Any:
    timm = pytest.importorskip("timm")
    model = redrawn(timm.create_model(name, num_classes=5, **arguments))
    data = {**model.pretrained_cfg, "input_size": (3, 64, 64), "interpolation": "bicubic", "crop_pct": 0.9}
    timm.models.save_for_hf(
        model, folder, model_config={"pretrained_cfg": data}, model_args=arguments, safe_serialization=True
    )
    return model


@pytest.mark.parametrize(
    ("name", "arguments", "prefix"),
    [
        ("vit_tiny_patch16_224", {"depth": 2, "img_size": 64}, 1),
        ("vit_small_patch14_reg4_dinov2", {"depth": 2, "img_size": 70, "embed_dim": 48, "num_heads": 3}, 5),
        ("vit_base_patch16_siglip_224", {"depth": 1, "img_size": 64, "embed_dim": 48, "num_heads": 3}, 0),
        ("swin_tiny_patch4_window7_224", {"depths": (1, 1), "img_size": 56, "embed_dim": 24}, 0),
        ("resnet10t", {}, 0),
    ],
)
def test_timm_gives_its_own_features(tmp_path: Path, name: str, arguments: dict[str, Any], prefix: int) -> None:
    model = save_timm(tmp_path, name, **arguments)
    side = arguments.get("img_size", 64)
    encoder: Any = load_image_encoder(tmp_path, size=(side, side), dtype=torch.float32, device=CPU)
    pixels = torch.randn(2, 3, side, side)
    with torch.inference_mode():
        features = model.forward_features(pixels)
        pooled = model.forward_head(features, pre_logits=True)
    made = encoder.features(pixels)
    if features.ndim == 3:
        assert encoder.prefix == model.num_prefix_tokens == prefix
        torch.testing.assert_close(made["patches"], features[:, prefix:], rtol=0, atol=1e-5)
    else:
        last = features if features.shape[-1] == model.num_features else features.permute(0, 2, 3, 1)
        assert encoder.grid == tuple(last.shape[1:3])
        torch.testing.assert_close(made["patches"], last.flatten(1, 2), rtol=0, atol=1e-5)
    torch.testing.assert_close(made["cls"], features[:, 0] if prefix else pooled, rtol=0, atol=1e-5)


@pytest.mark.parametrize("changes", [{"crop_pct": 0.9}, {"crop_pct": 1.0}, {"crop_mode": "squash", "crop_pct": 0.8}])
def test_timm_prepares_pictures_as_timm_does(tmp_path: Path, changes: dict[str, Any]) -> None:
    timm = pytest.importorskip("timm")
    save_timm(tmp_path, "resnet10t")
    config = json.loads((tmp_path / "config.json").read_text())
    config["pretrained_cfg"] |= changes
    (tmp_path / "config.json").write_text(json.dumps(config))
    data = timm.data.resolve_data_config(pretrained_cfg=config["pretrained_cfg"], args={})
    transform = timm.data.create_transform(**data, is_training=False)
    preprocessing, note = read_preprocessing(tmp_path, configured_image_size(tmp_path))
    assert note is None
    for picture in noise():
        pixels = preprocessing.normalise(torch.from_numpy(preprocessing.prepared(picture)[None]), torch.float32)
        torch.testing.assert_close(pixels[0], transform(picture), rtol=0, atol=1e-5)


def test_a_timm_configuration_opens_no_other_file(tmp_path: Path) -> None:
    save_timm(tmp_path, "resnet10t")
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_args": {"checkpoint_path": "other.pth"}}))
    with pytest.raises(UserError, match="checkpoint_path"):
        load_image_encoder(tmp_path, size=(64, 64), dtype=torch.float32, device=CPU)


def save_open_clip(folder: Path, **preprocessing: Any) -> Any:
    open_clip = pytest.importorskip("open_clip")
    vision = {"image_size": 32, "layers": 2, "width": 64, "patch_size": 16}
    text = {"context_length": 20, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2}
    config = {"embed_dim": 16, "vision_cfg": vision, "text_cfg": text}
    folder.mkdir(exist_ok=True)
    described = {
        "size": 32,
        "mean": [0.1, 0.5, 0.9],
        "std": [0.5, 0.2, 0.3],
        "interpolation": "bicubic",
        **preprocessing,
    }
    content = {"model_cfg": config, "preprocess_cfg": described}
    (folder / "open_clip_config.json").write_text(json.dumps(content))
    model = redrawn(open_clip.create_model(f"local-dir:{folder}"))
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")
    return model


@pytest.mark.parametrize("mode", ["shortest", "squash"])
def test_open_clip_gives_its_own_vectors(tmp_path: Path, mode: str) -> None:
    model = save_open_clip(tmp_path / "clip", resize_mode=mode)
    open_clip = pytest.importorskip("open_clip")
    folder = f"local-dir:{tmp_path / 'clip'}"
    _, transform = open_clip.create_model_from_pretrained(folder)
    preprocessing, note = read_preprocessing(tmp_path / "clip", configured_image_size(tmp_path / "clip"))
    assert note is None
    encoder = load_image_encoder(tmp_path / "clip", output="aligned", size=(32, 32), dtype=torch.float32, device=CPU)
    for picture in noise():
        pixels = preprocessing.normalise(torch.from_numpy(preprocessing.prepared(picture)[None]), torch.float32)
        torch.testing.assert_close(pixels[0], transform(picture), rtol=0, atol=1e-5)
        with torch.inference_mode():
            torch.testing.assert_close(encoder.features(pixels)["cls"], model.encode_image(pixels), rtol=0, atol=1e-5)
    texts = sentences(tmp_path / "clip", output="aligned", max_length=20)
    with torch.inference_mode():
        own = model.encode_text(open_clip.get_tokenizer(folder)(TEXTS))
    np.testing.assert_allclose(texts.encode(TEXTS), own, atol=1e-5)
    with pytest.raises(UserError, match="20 tokens"):
        sentences(tmp_path / "clip", output="aligned", max_length=64)
    (tmp_path / "clip/open_clip_pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(UserError, match="pickled weights"):
        sentences(tmp_path / "clip", output="aligned", max_length=20)
    with pytest.raises(UserError, match="no output 'hidden'"):
        load_image_encoder(tmp_path / "clip", size=(32, 32), dtype=torch.float32, device=CPU)


@pytest.mark.parametrize(
    ("name", "content", "distribution"),
    [
        ("config.json", {"architecture": "resnet10t"}, "timm"),
        ("open_clip_config.json", {}, "open-clip-torch"),
        ("modules.json", [], "sentence-transformers"),
    ],
)
def test_the_version_of_an_optional_reader_counts_where_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: Any, distribution: str
) -> None:
    (tmp_path / name).write_text(json.dumps(content))
    made_of = []
    for release in ("1.0", "1.1"):
        monkeypatch.setattr(checkpoint_kinds, "version", lambda asked, release=release: f"{release} of {asked}")
        assert library(tmp_path) == f"{distribution} {release} of {distribution}"
        settings = ExtractTextSettings.model_validate({"text_encoder": {"source": str(tmp_path)}})
        made_of.append(fingerprint(find_stage("extract_text"), settings, {}, tmp_path)["files"])
    assert {key for key, value in made_of[0].items() if made_of[1][key] != value} == {
        "the reader of text_encoder.source"
    }
    settings = ExtractTextSettings.model_validate({"text_encoder": {"source": str(tmp_path), "pool": "mean"}})
    plain = fingerprint(find_stage("extract_text"), settings, {}, tmp_path)["files"]
    assert ("the reader of text_encoder.source" in plain) == (name != "modules.json")


def sentences(folder: Path, output: Any = "hidden", pool: Any = "auto", max_length: int = 24, **options: Any) -> Any:
    arguments = {"revision": "main", "dtype": "float32", "device": CPU, "max_length": max_length, **options}
    return TextRecipe(str(folder), output=output, pool=pool, **arguments).load()


def save_sentence_encoder(folder: Path, pooling: str, *more: str, **options: Any) -> Any:
    """A random BERT with the modules, prompts and options of sentence-transformers."""
    library = pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer import modules as models

    save_bert(folder / "plain", WORDS, max_position_embeddings=24, num_hidden_layers=2)
    transformer = models.Transformer(str(folder / "plain"), max_seq_length=24)
    modules = [transformer, models.Pooling(8, pooling_mode=pooling)]
    if "dense" in more:
        modules.append(redrawn(models.Dense(8, 6)))
    if "normalise" in more:
        modules.append(models.Normalize())
    model = library.SentenceTransformer(modules=modules, device="cpu", **options)
    if "without prompt" in more:
        model.set_pooling_include_prompt(False)
    model.save_pretrained(str(folder / "saved"))
    return library.SentenceTransformer(str(folder / "saved"), device="cpu")


PROMPTS = {"query": "query : ", "passage": "passage : "}


@pytest.mark.parametrize(
    ("pooling", "more", "options", "prompt", "used"),
    [
        ("mean", (), {}, None, ""),
        ("mean", ("normalise",), {"prompts": PROMPTS}, "query", "query : "),
        ("cls", ("dense", "normalise"), {}, None, ""),
        ("lasttoken", ("normalise",), {"prompts": PROMPTS, "default_prompt_name": "passage"}, None, "passage : "),
        ("max", (), {"prompts": PROMPTS}, "a red ", "a red "),
        ("mean", ("without prompt",), {"prompts": PROMPTS, "default_prompt_name": "query"}, None, "query : "),
    ],
)
def test_a_sentence_encoder_is_read_as_published(
    tmp_path: Path, pooling: str, more: tuple[str, ...], options: dict[str, Any], prompt: str | None, used: str
) -> None:
    """E5, BGE, GTE, LaBSE, EmbeddingGemma and Qwen3-Embedding are such folders."""
    model = save_sentence_encoder(tmp_path, pooling, *more, **options)
    expected = model.encode(TEXTS, prompt=used)
    folder = tmp_path / "saved"
    np.testing.assert_allclose(sentences(folder, prompt=prompt).encode(TEXTS), expected, atol=1e-5)
    shared = {"revision": "main", "output": "hidden", "dtype": "float32", "max_length": 24}
    recipe = TextRecipe(str(folder), CPU, pool="auto", prompt=prompt, **shared)
    assert (recipe.attributes["pool"], recipe.attributes.get("prompt", "")) == ("modules.json", used)
    assert (recipe.note is None) == bool(used or not options)
    assert recipe.attributes["library"] == f"sentence-transformers {checkpoint_kinds.version('sentence-transformers')}"
    plain = TextRecipe(str(folder), CPU, pool="mean", **shared)
    assert "library" not in plain.attributes
    assert plain.attributes["weights_sha256"] != recipe.attributes["weights_sha256"]
    own = sentences(folder, pool="mean", prompt="")
    np.testing.assert_allclose(own.encode(TEXTS), sentences(tmp_path / "plain").encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type": "own_code.Pooling"}, None),
        ({"type": "sentence_transformers.models.WordWeights"}, "is not read"),
        ({"path": "../plain"}, "is not read"),
    ],
)
def test_modules_run_no_code(tmp_path: Path, change: dict[str, str], message: str | None) -> None:
    save_sentence_encoder(tmp_path, "mean")
    path = tmp_path / "saved" / "modules.json"
    modules = json.loads(path.read_text())
    path.write_text(json.dumps([modules[0], {**modules[1], **change}]))
    if message is None:  # The class is that of sentence-transformers, whatever the package is called.
        assert sentences(tmp_path / "saved").dim == 8
        return
    with pytest.raises(UserError, match=message):
        sentences(tmp_path / "saved")


def test_without_sentence_transformers_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_bert(tmp_path, WORDS, max_position_embeddings=24)
    (folder / "modules.json").write_text(json.dumps([{}, {"type": "x.Pooling", "path": "1_Pooling"}]))
    monkeypatch.setitem(sys.modules, "sentence_transformers.sentence_transformer", None)
    with pytest.raises(UserError, match=r"pip install 'vitcapr\[sentence-transformers\]', or set pool to mean"):
        sentences(folder)
    assert sentences(folder, pool="mean").dim == 8
