"""The sheets of augmented and encoded pictures."""

import base64
from types import SimpleNamespace

import numpy as np
from matplotlib.image import BboxImage
from PIL import Image

from tests.data_sets import encoded
from tests.report.conftest import packed, texts_of
from vitcapr.config.report import FiguresConfig
from vitcapr.extensions.finetuning.augment import Augmentation, single_changes
from vitcapr.extensions.finetuning.augmented import augmentation_sheet, encoding_sheet
from vitcapr.extensions.finetuning.config import AugmentationConfig
from vitcapr.extensions.finetuning.stages.draw_pixels import PixelFigureSettings


def test_a_column_a_change_and_a_row_an_image() -> None:
    changes = {
        name: np.stack([np.full((4, 4, 3), 10 * row + column, np.uint8) for row in range(2)])
        for column, name in enumerate(("original", "flip", "blur"))
    }
    figure = augmentation_sheet(changes)
    assert [image.get_array()[0, 0, 0] for image in packed(figure, BboxImage)] == [0, 1, 2, 10, 11, 12]
    assert texts_of(figure) == ["original", "flip", "blur"]


def test_a_file_in_base64_beside_its_image() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)
    content = encoded(Image.fromarray(pixels))
    figure = encoding_sheet(content)
    assert np.array_equal(packed(figure, BboxImage)[0].get_array(), pixels)
    texts = texts_of(figure)
    assert base64.b64decode("".join(texts).split("...")[0]) == content[:480]
    characters = 4 * -(-len(content) // 3)
    share = f"{characters / len(content) - 1:+.1%}"
    cost = f"file {len(content):,} bytes; Base64 {characters:,} characters, {share}; raw RGB 3,600 bytes"
    assert " ".join(texts[texts.index("...") + 1 :]) == cost


def test_each_change_is_alone() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), np.uint8)
    changed = single_changes(pictures, Augmentation(blur=2.0))
    assert np.array_equal(changed["original"], pictures)
    assert np.array_equal(changed["flip"], pictures[:, :, ::-1])
    assert all((changed[name] != pictures).any() for name in ("rotation", "brighter", "hue", "blur"))
    assert list(single_changes(pictures, Augmentation(rotation=0, hue=0))) == ["original", "flip", "brighter", "blur"]


def test_the_augmentation_is_that_of_the_model_of_the_pixels() -> None:
    models = {
        name: SimpleNamespace(image=SimpleNamespace(backbone=backbone), training=SimpleNamespace(augmentation=limits))
        for name, backbone, limits in (
            ("a", "vit", None),
            ("b", "resnet", AugmentationConfig(blur=1)),
            ("c", "vit", AugmentationConfig(blur=2)),
        )
    }
    config = SimpleNamespace(
        finetuned_dual_encoders=models,
        run=SimpleNamespace(finetuned_dual_encoders=list(models)),
        figures=FiguresConfig(),
    )
    settings = PixelFigureSettings.from_config(config, SimpleNamespace(backbone="vit"))
    assert settings.augmentation == AugmentationConfig(blur=2)
