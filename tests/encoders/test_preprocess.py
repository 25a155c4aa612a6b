import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.efficientnet.image_processing_pil_efficientnet import EfficientNetImageProcessorPil
from transformers.models.mobilenet_v2.image_processing_pil_mobilenet_v2 import MobileNetV2ImageProcessorPil
from transformers.models.mobilevit.image_processing_pil_mobilevit import MobileViTImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from vitcapr.encoders.preprocess import Preprocessing, read_preprocessing
from vitcapr.errors import UserError

SIZES = [(50, 37), (37, 50), (40, 40), (32, 129), (28, 28)]


def write(folder: Path, content: dict[str, Any]) -> Path:
    (folder / "preprocessor_config.json").write_text(json.dumps(content))
    (folder / "config.json").write_text('{"model_type": "vit"}')
    return folder


def pictures() -> list[Image.Image]:
    generator = np.random.default_rng(3)
    smooth = [generator.integers(0, 256, (h // 4 + 1, w // 4 + 1, 3), dtype=np.uint8) for w, h in SIZES]
    return [Image.fromarray(s).resize(size, Image.Resampling.BICUBIC) for s, size in zip(smooth, SIZES, strict=True)]


def ours(preprocessing: Preprocessing, image: Image.Image) -> torch.Tensor:
    pixels = np.empty((1, *preprocessing.size, 3), np.uint8)
    preprocessing.prepare(image, pixels[0])
    return preprocessing.normalise(torch.from_numpy(pixels), torch.float32)


@pytest.mark.parametrize(
    "processor",
    [
        ViTImageProcessorPil(size={"height": 24, "width": 16}, resample=3, image_mean=[0.1, 0.5, 0.9]),
        ViTImageProcessorPil(size={"height": 24, "width": 24}, resample=2, do_normalize=False),
        DeiTImageProcessorPil(size={"height": 32, "width": 32}, crop_size={"height": 28, "width": 28}, resample=3),
        BitImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 27, "width": 27}, resample=3),
        CLIPImageProcessorPil(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}),
        SiglipImageProcessorPil(size={"height": 16, "width": 16}),
        BlipImageProcessorPil(size={"height": 16, "width": 16}),
        ConvNextImageProcessorPil(size={"shortest_edge": 28}),
        ConvNextImageProcessorPil(size={"shortest_edge": 28}, crop_pct=0.9, resample=2),
        ConvNextImageProcessorPil(size={"shortest_edge": 384}),
        MobileNetV2ImageProcessorPil(size={"shortest_edge": 30}, crop_size={"height": 27, "width": 27}),
        EfficientNetImageProcessorPil(size={"height": 30, "width": 30}, resample=2),
        EfficientNetImageProcessorPil(size={"height": 30, "width": 30}, resample=2, rescale_offset=True),
        MobileViTImageProcessorPil(size={"shortest_edge": 30}, crop_size={"height": 27, "width": 27}, resample=2),
    ],
    ids=lambda processor: type(processor).__name__,
)
def test_equals_the_checkpoints_own_processor(tmp_path: Path, processor: Any) -> None:
    processor.save_pretrained(tmp_path)
    preprocessing, note = read_preprocessing(tmp_path, (99, 99))
    assert note is None
    for image in pictures():
        expected = processor(image, return_tensors="pt")["pixel_values"]
        torch.testing.assert_close(ours(preprocessing, image), expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("processor", [
    BitImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 27, "width": 27}, resample=1),
    ConvNextImageProcessorPil(size={"shortest_edge": 28}),
], ids=lambda processor: f"{type(processor).__name__} {processor.resample}")  # fmt: skip
@pytest.mark.parametrize("size", [(3001, 1), (3, 7001), (9000, 40)])
def test_a_narrow_picture_costs_its_own_pixels(
    tmp_path: Path, processor: Any, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pixels are those of the whole picture resized and cropped, but for the last step of rounding."""
    processor.save_pretrained(tmp_path)
    preprocessing, _ = read_preprocessing(tmp_path, (99, 99))
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8))
    expected = processor(picture, return_tensors="pt", do_normalize=False, do_rescale=False)["pixel_values"][0]
    sizes, resize = [], Image.Image.resize
    monkeypatch.setattr(
        Image.Image,
        "resize",
        lambda self, size, *args, **options: (sizes.append(size), resize(self, size, *args, **options))[1],
    )
    pixels = preprocessing.prepared(picture)
    assert np.abs(pixels.astype(int) - expected.permute(1, 2, 0).numpy()).max() <= 1
    assert max(width * height for width, height in sizes) <= 64 * 28 * 28


def test_a_mirrored_picture_is_the_flipped_one(tmp_path: Path) -> None:
    """Its description differs from the plain one's, which is what it was before there were mirrors."""
    write(tmp_path, {"size": {"shortest_edge": 20}, "crop_size": 16, "image_processor_type": "CLIPImageProcessor",
                     "image_mean": [0.5] * 3, "image_std": [0.5] * 3})  # fmt: skip
    plain, mirrored = (read_preprocessing(tmp_path, (99, 99), mirror=mirror)[0] for mirror in (False, True))
    for image in pictures():
        flipped = Image.fromarray(np.asarray(image)[:, ::-1])
        assert torch.equal(ours(mirrored, image), ours(plain, flipped))
        assert not torch.equal(ours(mirrored, image), ours(plain, image))
    assert plain.describe().keys() == {"resize", "crop", "interpolation", "scale", "mean", "std"}
    assert mirrored.describe() == {**plain.describe(), "mirror": True}


@pytest.mark.parametrize(
    ("content", "resize", "crop"),
    [
        ({"size": 224, "feature_extractor_type": "ViTFeatureExtractor"}, (224, 224), None),
        ({"size": 30, "crop_size": 24, "feature_extractor_type": "CLIPFeatureExtractor"}, (30,), (24, 24)),
        ({"size": 224, "crop_pct": 0.875, "feature_extractor_type": "ConvNextFeatureExtractor"}, (256,), (224, 224)),
        ({"size": {"height": 24, "width": 16}, "image_processor_type": "DINOv3ViTImageProcessorFast"}, (24, 16), None),
    ],
)
def test_configurations_of_old_and_torchvision_processors(
    tmp_path: Path, content: dict[str, Any], resize: tuple[int, ...], crop: tuple[int, int] | None
) -> None:
    """google/vit-base-patch16-224-in21k, old CLIPs, microsoft/resnet-50 and DINOv3 are described like this."""
    write(tmp_path, {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 2, **content})
    preprocessing, _ = read_preprocessing(tmp_path, (99, 99))
    assert preprocessing == Preprocessing(resize, crop, "bilinear", 1 / 255, (0.5,) * 3, (0.5,) * 3)


def test_size_and_interpolation_can_be_changed(tmp_path: Path) -> None:
    BitImageProcessorPil(size={"shortest_edge": 256}, crop_size={"height": 224, "width": 224}).save_pretrained(tmp_path)
    changed, _ = read_preprocessing(tmp_path, (224, 224), image_size=448, interpolation="lanczos")
    assert (changed.resize, changed.crop, changed.interpolation) == ((512,), (448, 448), "lanczos")
    ViTImageProcessorPil().save_pretrained(tmp_path)
    changed, _ = read_preprocessing(tmp_path, (224, 224), image_size=96)
    assert (changed.resize, changed.crop) == ((96, 96), None)
    assert [replace(changed, rounded_crop=True)._offset(length, 4) for length in (7, 10)] == [2, 3]


def test_without_a_processor_the_assumption_is_logged(tmp_path: Path) -> None:
    preprocessing, note = read_preprocessing(tmp_path, (32, 48))
    assert preprocessing.size == (32, 48)
    assert "32 x 48" in str(note)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"image_mean": [0.5], "image_std": [0.5]}, "three numbers"),
        ({"size": {"longest_edge": 5}}, "not understood"),
        ({"size": {"shortest_edge": 32}, "do_center_crop": False}, "make no batch"),
        ({"resample": 77}, "interpolation 77"),
        ({"size": {"shortest_edge": 32}, "crop_size": 64, "do_center_crop": True}, "larger than"),
        (
            {"image_processor_type": "ViTImageProcessor", "do_pad": True},
            "the step 'do_pad' of the processor is not read",
        ),
        ({"image_processor_type": "NoImageProcessor", "size": 30}, "size 30 is not understood"),
    ],
)
def test_what_cannot_be_understood_is_one_line(tmp_path: Path, content: dict[str, Any], message: str) -> None:
    write(tmp_path, {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, **content})
    with pytest.raises(UserError, match=message):
        read_preprocessing(tmp_path, (16, 16))


@pytest.mark.parametrize("content", ["[]", "{", ""])
def test_a_damaged_description_is_one_line(tmp_path: Path, content: str) -> None:
    write(tmp_path, {})
    (tmp_path / "preprocessor_config.json").write_text(content)
    with pytest.raises(UserError, match=r"preprocessor_config\.json"):
        read_preprocessing(tmp_path, (16, 16))
