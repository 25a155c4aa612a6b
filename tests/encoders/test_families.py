"""The tables of families in docs/adding-a-backbone.md: a tiny random checkpoint of each row is read as the row says."""

import re
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoConfig, AutoModel, AutoTokenizer, GemmaTokenizer
from transformers.models.siglip2.image_processing_pil_siglip2 import Siglip2ImageProcessorPil

from tests.encoders.two_towers import bert_tokenizer
from vitcapr.encoders.image_encoders import configured_image_size, load_image_encoder
from vitcapr.encoders.network_checks import blocks, check_images
from vitcapr.encoders.preprocess import read_preprocessing
from vitcapr.encoders.text_encoders import TextRecipe
from vitcapr.errors import UserError

PAGE = Path(__file__).parents[2] / "docs/adding-a-backbone.md"
CPU, SIDE = torch.device("cpu"), 64
LAYERS = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
VISION = {**LAYERS, "image_size": SIDE, "patch_size": 16, "projection_dim": 16}
FLAT = {key: VISION[key] for key in (*LAYERS, "patch_size")}
STAGES = {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 1, 2, 2]}
SWIN = {"image_size": SIDE, "embed_dim": 8, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2], "patch_size": 2}
EFFICIENT = {"width_coefficient": 0.1, "depth_coefficient": 0.1, "image_size": SIDE, "hidden_dim": 128}
RADIO = {"max_img_size": 128, "num_cls_tokens": 3, "num_registers": 5, "summary_idxs": [0, 1]}
HIERA = {"masked_unit_size": [8, 8], "patch_size": [3, 3], "patch_stride": [2, 2], "patch_padding": [1, 1]}
SHAPES: dict[str, dict[str, Any]] = {
    "siglip2_vision_model": {**FLAT, "num_patches": 16},
    "radio": {**VISION, **RADIO},
    "dinov3_vit": {**VISION, "num_register_tokens": 4},
    "yolos": {**VISION, "image_size": [SIDE, SIDE], "num_detection_tokens": 7},
    "swin": {**SWIN, "window_size": 2},
    "swinv2": {**SWIN, "window_size": 2},
    "hiera": {**SWIN, **HIERA, "image_size": [SIDE, SIDE]},
    "efficientnet": EFFICIENT,
    "focalnet": {key: value for key, value in SWIN.items() if key not in ("num_heads", "patch_size")},
    "mobilevit": {"image_size": SIDE, "hidden_sizes": [16, 16, 16], "neck_hidden_sizes": [8, 8, 8, 8, 8, 8, 16]},
    "dinov3_convnext": {**STAGES, "image_size": SIDE},
    "align": {"vision_config": EFFICIENT},
    "siglip2": {"vision_config": {**FLAT, "num_patches": 16}},
    **{name: {**STAGES, "image_size": SIDE} for name in ("pvt", "pvt_v2", "segformer")},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 32},
    "t5": {"d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 2, "num_heads": 2},
    **{
        name: {"d_model": 16, "max_position_embeddings": 64}
        | {
            f"{half}_{key}": size
            for half in ("encoder", "decoder")
            for key, size in (("layers", 2), ("attention_heads", 2), ("ffn_dim", 32))
        }
        for name in ("m2m_100", "mbart")
    },
    **{name: {**LAYERS, "num_key_value_heads": 2, "head_dim": 8} for name in ("qwen3", "llama", "gemma3_text")},
}
PAIRS = ("clip", "siglip", "siglip2", "altclip", "chinese_clip", "metaclip_2", "aimv2", "blip", "align", "tipsv2")
GENERATIVE = ("llava", "paligemma", "git", "internvl", "kosmos-2")
FAST = {"vit", "vit_mae", "yolos", "radio", "siglip2", "aimv2", "tipsv2", "llava", "swin"}
FAST |= {"clip", "bert", "fnet", "m2m_100"}


def save(family: str, folder: Path) -> Any:
    """A random model, its weights redrawn, and a tokenizer."""
    torch.manual_seed(0)
    tokens = {"vocab_size": 99, "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    text = {**LAYERS, **tokens, "projection_size": 16, "projection_dim": 16}
    shape = SHAPES.get(family, VISION)
    if family in (*PAIRS, *GENERATIVE):
        shape = {"text_config": text, "vision_config": VISION, "projection_dim": 16, **SHAPES.get(family, {})}
    elif family in rows("text"):
        shape = {**tokens, **SHAPES.get(family, LAYERS)}
    model = AutoModel.from_config(AutoConfig.for_model(family, **shape)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            constant = parameter.numel() < 2 or parameter.std() == 0
            parameter.add_(0.3 * torch.randn_like(parameter)) if constant else parameter.mul_(0.3 / parameter.std())
    model.save_pretrained(folder)
    bert_tokenizer().save_pretrained(folder)
    return model


def rows(what: str) -> dict[str, list[str]]:
    """The cells of each family in the table under the heading of ``what``."""
    section = re.split(r"\n#+ ", PAGE.read_text(encoding="utf-8"))
    table = next(part for part in section if part.startswith(f"Families: {what}"))
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| `")]
    return {family: rest for names, *rest in cells[1:] for family in re.findall(r"`(.+?)`", names)}


def of_table(what: str) -> list[Any]:
    mark = {True: [], False: [pytest.mark.slow]}
    return [pytest.param(name, *cells, id=name, marks=mark[name in FAST]) for name, cells in rows(what).items()]


def load(folder: Path, **options: Any) -> Any:
    size = configured_image_size(folder)
    return load_image_encoder(
        folder, size=(SIDE, SIDE) if size == (224, 224) else size, dtype=torch.float32, device=CPU, **options
    )


@pytest.mark.parametrize(("family", "hidden", "aligned"), of_table("pictures"))
def test_a_family_of_pictures(tmp_path: Path, family: str, hidden: str, aligned: str) -> None:
    save(family, tmp_path)
    if hidden.startswith("refused"):
        with pytest.raises(UserError, match=hidden.partition(": ")[2] or None):
            load(tmp_path)
    else:
        encoder = load(tmp_path)
        assert encoder.cls_is.startswith(hidden)
        assert encoder.shapes["patches"][0] == encoder.grid[0] * encoder.grid[1]
    if aligned == "yes":
        encoder = load(tmp_path, output="aligned")
        assert encoder.shapes.keys() == {"cls"}
    else:
        with pytest.raises(UserError):
            load(tmp_path, output="aligned")


@pytest.mark.parametrize(("family", "hidden", "aligned"), of_table("text"))
def test_a_family_of_text(tmp_path: Path, family: str, hidden: str, aligned: str) -> None:
    model = save(family, tmp_path)
    if hidden.startswith("refused"):
        with pytest.raises(UserError, match="depends on the length of its batch"):
            sentences(tmp_path)
    else:
        encoder = sentences(tmp_path)
        half = model.get_encoder() if model.config.is_encoder_decoder else getattr(model, "text_model", model)
        if family not in ("aimv2", "siglip", "siglip2"):
            tokens = AutoTokenizer.from_pretrained(tmp_path)("a dog runs", return_tensors="pt")
            tokens.pop("token_type_ids", None)
            with torch.inference_mode():
                own = half(**tokens).last_hidden_state.mean(1)
            np.testing.assert_allclose(encoder.encode(["a dog runs"]), own, atol=1e-4)
    if aligned == "yes":
        assert sentences(tmp_path, output="aligned").dim == 16


def sentences(folder: Path, output: Any = "hidden", **options: Any) -> Any:
    arguments = {"revision": "main", "pool": "auto", "dtype": "float32", "device": CPU, "max_length": 24, **options}
    return TextRecipe(str(folder), output=output, **arguments).load()


@pytest.mark.parametrize("run", [lambda means: torch.randn_like(means), lambda means: means - means.mean(0) + 1])
def test_features_that_depend_on_more_than_the_picture_are_refused(tmp_path: Path, run: Any) -> None:
    """On random numbers, and on the other pictures of the batch."""

    class Encoder:
        model, grid, shapes, dtype, device = torch.nn.Identity(), (0, 0), {"cls": (3,)}, torch.float32, CPU

        def features(self, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"cls": run(pixels.mean((2, 3)))}

    with pytest.raises(UserError, match="a picture gets other cls"):
        check_images(Encoder(), (4, 4), tmp_path)


def test_the_patches_of_mae_are_in_order(tmp_path: Path) -> None:
    """Without shuffling, its encoder is a ViT: with one layer replaced by nothing, a patch is where it was."""
    model = save("vit_mae", tmp_path)
    encoder, pixels = load(tmp_path), torch.randn(2, 3, SIDE, SIDE)
    with torch.inference_mode():
        tokens, positions = model.embeddings.patch_embeddings(pixels), model.embeddings.position_embeddings
        cls = (model.embeddings.cls_token + positions[:, :1]).expand(2, -1, -1)
        hidden = torch.cat([cls, tokens + positions[:, 1:]], 1)
        for layer in blocks(model) or []:
            output = layer(hidden)
            hidden = output if isinstance(output, torch.Tensor) else output[0]
        hidden = model.layernorm(hidden)
    torch.testing.assert_close(encoder.features(pixels)["patches"], hidden[:, 1:], rtol=0, atol=1e-4)


def test_naflex_reads_a_square_picture_as_its_processor_cuts_it(tmp_path: Path) -> None:
    model = save("siglip2", tmp_path)
    processor = Siglip2ImageProcessorPil(patch_size=16, max_num_patches=16)
    processor.save_pretrained(tmp_path)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (80, 80, 3), dtype=np.uint8))
    preprocessing, note = read_preprocessing(tmp_path, configured_image_size(tmp_path))
    pixels = preprocessing.normalise(torch.from_numpy(preprocessing.prepared(picture)[None]), torch.float32)
    with torch.inference_mode():
        own = model.get_image_features(**processor([picture], return_tensors="pt")).pooler_output
    assert note is None
    torch.testing.assert_close(load(tmp_path, output="aligned").features(pixels)["cls"], own, rtol=0, atol=1e-4)


@pytest.mark.parametrize("family", ["siglip", "siglip2"])
def test_siglip_2_reads_lower_case_filled_to_its_length(tmp_path: Path, family: str) -> None:
    """Its tokenizer is Gemma's, which keeps capitals; its text model attends to the padding."""
    model = save(family, tmp_path)
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", "\u2581", *string.ascii_letters]
    tokenizer = GemmaTokenizer(vocab={piece: row for row, piece in enumerate(pieces)}, merges=[])
    tokenizer.save_pretrained(tmp_path)
    ids = tokenizer("a dog sits", padding="max_length", max_length=32, padding_side="right", return_tensors="pt")
    with torch.inference_mode():
        whole = model.text_model(input_ids=ids["input_ids"])
    real = ids["attention_mask"][..., None]
    hidden, capitals = sentences(tmp_path), ["A dog SITS"]
    expected = (whole.last_hidden_state * real).sum(1) / real.sum(1)
    np.testing.assert_allclose(hidden.encode(capitals), expected, atol=1e-4)
    aligned = sentences(tmp_path, output="aligned")
    np.testing.assert_allclose(aligned.encode(capitals), whole.pooler_output, atol=1e-4)
    shared = {"revision": "main", "output": "hidden", "pool": "auto", "dtype": "float32", "max_length": 24}
    assert TextRecipe(str(tmp_path), CPU, **shared).attributes["lowercase"] is True
