"""Images that a Python user gives: paths, pictures, bytes and arrays, one or several."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vitcapr.data.photographs import as_list, open_image
from vitcapr.errors import UserError

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 5, 3), np.uint8)


@pytest.fixture
def forms(tmp_path: Path) -> list[Any]:
    path, picture = tmp_path / "a.png", Image.fromarray(PIXELS)
    picture.save(path)
    return [path, str(path), picture, path.read_bytes(), io.BytesIO(path.read_bytes()), PIXELS]


def test_one_or_several_images(forms: list[Any]) -> None:
    for image in forms:
        (one,) = as_list(image)
        assert np.array_equal(open_image(one), PIXELS)
    for several in (forms, tuple(forms), iter(forms), np.stack([PIXELS] * 6)):
        assert len(as_list(several)) == 6
    assert as_list([]) == []


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (None, "it is NoneType, not a path"),
        (3.5, "it is float, not a path"),
        (b"a", "not an image in a known format"),
        (io.StringIO("a"), "it is StringIO, not a path"),
        (PIXELS / 255, r"it is float64 of shape \(4, 5, 3\), not a path"),
        (PIXELS[0], r"it is uint8 of shape \(5, 3\), not a path"),  # A row of pixels is not a grey image.
        (PIXELS[:0], r"it is uint8 of shape \(0, 5, 3\), not a path"),
        ("absent.png", r"unreadable: No such file or directory \(absent.png\)"),
    ],
)
def test_what_is_no_image_is_refused(image: Any, reason: str) -> None:
    with pytest.raises(UserError, match=f"this image cannot be used: {reason}"):
        open_image(image)
