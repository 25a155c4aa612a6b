"""The sheets of augmented and encoded pictures."""

import base64
import io

import numpy as np
from PIL import Image

from vitcapr.batches.augment import Augmentation, single_changes
from vitcapr.report.figures.augmented import augmentation_sheet, encoding_sheet


def test_a_column_a_change_and_a_row_a_picture() -> None:
    pictures = [[np.full((4, 4, 3), 10 * row + column, np.uint8) for column in range(3)] for row in range(2)]
    axes = augmentation_sheet(pictures, ["original", "flip", "blur"]).axes
    assert [ax.get_images()[0].get_array()[0, 0, 0] for ax in axes] == [0, 1, 2, 10, 11, 12]
    assert [ax.get_title() for ax in axes] == ["original", "flip", "blur", "", "", ""]


def test_a_file_in_base64_beside_its_image() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 40, 3), np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    content = file.getvalue()
    figure = encoding_sheet(content, pixels.size)
    assert np.array_equal(figure.axes[0].images[0].get_array(), pixels)
    text, cost = (each.get_text() for each in figure.texts)
    assert base64.b64decode(text.removesuffix("...")) == content[:480]
    characters = 4 * -(-len(content) // 3)
    share = f"{characters / len(content) - 1:+.1%}"
    assert cost == f"file {len(content):,} bytes; Base64 {characters:,} characters, {share}; raw RGB 3,600 bytes"


def test_each_change_is_alone() -> None:
    pictures = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), np.uint8)
    changed = single_changes(pictures, Augmentation())
    assert np.array_equal(changed["original"], pictures)
    assert np.array_equal(changed["flip"], pictures[:, :, ::-1])
    assert np.array_equal(changed["upside down"], pictures[:, ::-1])
    assert all((changed[name] != pictures).any() for name in ("rotation", "brighter", "hue", "blur"))
