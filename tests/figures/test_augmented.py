"""The sheets of augmented and encoded pictures."""

import numpy as np

from vitcapr.figures.augmented import Encoded, augmentation_sheet, encoding_sheet


def test_a_column_a_change_and_a_row_a_picture() -> None:
    pictures = [[np.full((4, 4, 3), 10 * row + column, np.uint8) for column in range(3)] for row in range(2)]
    axes = augmentation_sheet(pictures, ["original", "flip", "blur"]).axes
    assert [ax.get_images()[0].get_array()[0, 0, 0] for ax in axes] == [0, 1, 2, 10, 11, 12]
    assert [ax.get_title() for ax in axes] == ["original", "flip", "blur", "", "", ""]


def test_what_base64_costs_is_said() -> None:
    figure = encoding_sheet(Encoded(np.zeros((10, 20, 3), np.uint8), "A" * 130, 300, 400))
    text, cost = (found.get_text() for found in figure.texts)
    assert text.split("\n") == ["A" * 64, "A" * 64, "AA", "..."]
    assert cost == "file 300 bytes; Base64 400 characters, +33.3%; raw RGB 600 bytes"
