import hashlib
import io
import struct
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.data_sets import encoded
from vitcapr.data.images import BadImage, ImageSource, _decode, decode, inspect_all, thumbnail
from vitcapr.data.photographs import open_photograph
from vitcapr.progress import Reporter

LIMIT = 100_000_000


def pixels(content: bytes) -> np.ndarray:
    image = decode(content, LIMIT)
    assert image.mode == "RGB"
    return np.asarray(image)


def png_chunk(kind: bytes, body: bytes, checksum: int | None = None) -> bytes:
    right = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", right if checksum is None else checksum)


def png_claiming(width: int, height: int) -> bytes:
    """A PNG that is hardly more than its claim."""

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(b""))


# v * 255 / 65535 = v / 257, rounded: 128 / 257 = 0.498, 129 / 257 = 0.502, 25700 / 257 = 100, 65534 / 257 = 254.996
SIXTEEN_BITS = np.array([[0, 128, 129], [25700, 65534, 65535]], np.uint16)
EIGHT_BITS = np.array([[0, 0, 1], [100, 255, 255]], np.uint8)


GREY = np.array([[0, 7], [128, 255]], np.uint8)


@pytest.mark.parametrize(
    ("content", "grey"),
    [
        (encoded(Image.fromarray(GREY)), GREY),
        (encoded(Image.fromarray(np.array([[True, False]]))), np.array([[255, 0]])),
        (b"P5 3 2 65535\n" + SIXTEEN_BITS.astype(">u2").tobytes(), EIGHT_BITS),
        *(
            (encoded(Image.fromarray(SIXTEEN_BITS.astype(order)), format), EIGHT_BITS)
            for order in ("<u2", ">u2")
            for format in ("PNG", "TIFF")
        ),
    ],
)
def test_grey_becomes_three_equal_channels_and_sixteen_bits_are_scaled_not_clipped(content, grey):
    assert (pixels(content) == grey[:, :, None]).all()


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.array([[0, 70000]], np.int32), "32-bit pixels of unknown range"),
        (np.array([[0, -1]], np.int32), "32-bit pixels of unknown range"),
        (np.array([[0.0, 0.5]], np.float32), "floating-point pixels of unknown range"),
    ],
)
def test_pixels_of_unknown_range_are_refused(values, reason):
    with pytest.raises(BadImage, match=f"^{reason}$"):
        decode(encoded(Image.fromarray(values), "TIFF"), LIMIT)


def palette(transparency: int | bytes) -> bytes:
    image = Image.new("P", (3, 1))
    image.putpalette([10, 20, 30, 40, 50, 60, 70, 80, 90])
    image.putdata([0, 1, 2])
    return encoded(image, transparency=transparency)


def even(mode: str, *color: int) -> bytes:
    options = {"format": "JPEG", "quality": 95} if mode == "CMYK" else {}
    return encoded(Image.new(mode, (8, 8), color), **options)


@pytest.mark.parametrize(
    ("content", "seen", "off"),
    [
        # CMYK is neither inverted nor refused.
        (even("CMYK", 0, 255, 255, 0), (255, 0, 0), 3),
        (even("CMYK", 255, 255, 0, 0), (0, 0, 255), 3),
        (even("CMYK", 0, 0, 0, 0), (255, 255, 255), 3),
        (even("CMYK", 0, 0, 0, 255), (0, 0, 0), 3),
        (even("RGBA", 200, 100, 0, 255), (200, 100, 0), 1),
        (even("RGBA", 200, 100, 0, 0), (255, 255, 255), 1),
        (even("RGBA", 200, 100, 0, 51), (244, 224, 204), 1),  # a fifth of the colour, four fifths of white
        (even("LA", 100, 51), (224, 224, 224), 1),
        (palette(1), [[10, 20, 30], [255, 255, 255], [70, 80, 90]], 0),
        # half transparent: 10 * 128/255 + 255 * 127/255 = 132.0, 20 -> 137.0, 30 -> 142.1
        (palette(bytes([128, 255, 255])), [[132, 137, 142], [40, 50, 60], [70, 80, 90]], 1),
        (
            encoded(Image.fromarray(np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8)), transparency=(1, 2, 3)),
            [[255, 255, 255], [4, 5, 6]],
            0,
        ),
    ],
)
def test_colours_of_other_modes_and_transparency_over_white(content, seen, off):
    assert np.abs(pixels(content).astype(int) - seen).max() <= off


@pytest.mark.parametrize("format", ["GIF", "WEBP", "TIFF", "PNG", "MPO"])
def test_of_an_animation_the_first_frame_counts(format):
    frames = [Image.new("RGB", (8, 8), color) for color in ((255, 0, 0), (0, 0, 255))]
    options = {"lossless": True} if format == "WEBP" else {}
    content = encoded(frames[0], format, save_all=True, append_images=frames[1:], **options)
    assert np.abs(pixels(content).astype(int) - (255, 0, 0)).max() <= (3 if format == "MPO" else 0)


STORED = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
UPRIGHT = STORED[::-1].swapaxes(0, 1)
"""Of orientation 6."""


@pytest.mark.parametrize("format", ["PNG", "TIFF", "WEBP"])
def test_pictures_are_turned_upright(format):
    exif = Image.Exif()
    exif[0x0112] = 6
    options = {"lossless": True, "exact": True} if format == "WEBP" else {}
    content = encoded(Image.fromarray(STORED), format, exif=exif, **options)
    assert (pixels(content) == UPRIGHT).all()


def test_a_sixteen_bit_and_a_transparent_picture_are_turned_too():
    exif = Image.Exif()
    exif[0x0112] = 6
    sixteen = encoded(Image.fromarray(SIXTEEN_BITS), exif=exif)
    assert (pixels(sixteen) == EIGHT_BITS[::-1].T[:, :, None]).all()
    transparent = encoded(Image.fromarray(np.dstack([STORED, np.full((2, 3), 255, np.uint8)])), exif=exif)
    assert (pixels(transparent) == UPRIGHT).all()


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("exif", [b"Exif\x00\x00garbage", b"Exif\x00\x00II*\x00\xff\xff\xff\x7f"])
def test_unreadable_exif_costs_nothing(picture, exif):
    assert decode(picture(exif=exif), LIMIT).size == (6, 4)


def jpeg_segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


ZIPPED = b"x\0\0" + zlib.compress(bytes(3_000_000))
TURNED = png_chunk(b"eXIf", b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0")


@pytest.mark.parametrize(
    "chunks",
    [
        png_chunk(b"iCCP", ZIPPED),
        png_chunk(b"zTXt", ZIPPED),
        png_chunk(b"iTXt", b"workflow\0\1\0\0\0" + ZIPPED[3:]),
        png_chunk(b"zTXt", b"x\0\0" + zlib.compress(bytes(1_000_000))) * 70,
        png_chunk(b"iCCP", b""),
        png_chunk(b"iCCP", b"x\0\1" + ZIPPED[3:]),
        png_chunk(b"pHYs", b"abc"),
        png_chunk(b"tEXt", b"a\0b", checksum=1),
        png_chunk(b"acTL", b"ab"),
        png_chunk(b"acTL", struct.pack(">II", 2, 0)) + png_chunk(b"fcTL", bytes(26)),
    ],
    ids=lambda chunks: chunks[4:8].decode(),
)
@pytest.mark.parametrize("place", ["before the pixels", "after the pixels"])
def test_large_and_damaged_metadata_of_png_cost_nothing(chunks: bytes, place: str) -> None:
    """The picture is that of the same file without them, upright by its Exif."""
    content = encoded(Image.fromarray(STORED))
    content = content[:33] + TURNED + content[33:]
    start = 33 if place == "before the pixels" else len(content) - 12
    assert (pixels(content[:start] + chunks + content[start:]) == UPRIGHT).all()


@pytest.mark.parametrize("segment", [(0xE2, b"ICC_PROFILE\0"), (0xEE, b"Adobe"), (0xE0, b"JFIF")])
def test_cut_metadata_of_jpeg_cost_nothing(picture: Callable[..., bytes], segment: tuple[int, bytes]) -> None:
    content = picture()
    broken = content[:2] + jpeg_segment(*segment) + b"\xff" + content[2:]
    assert (pixels(broken) == pixels(content)).all()
    with pytest.raises(BadImage, match="claims 6 x 4 pixels"):
        decode(broken, 23)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"\xef\xbb\xbf\n <!DOCTYPE HTML><html><body>404</body>", "a web page, not an image"),
        (b"<html><head><title>Photo is no longer available</title>", "a web page, not an image"),
        (b"once upon a time", "not an image in a known format"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image in a known format"),
        (png_claiming(9000, 12000), "claims 9000 x 12000 pixels, more than 100000000"),
        (png_claiming(60000, 60000), "claims more pixels than Pillow opens"),
    ],
)
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_the_error_names_the_reason(content, reason):
    with pytest.raises(BadImage) as caught:
        decode(content, LIMIT)
    assert str(caught.value) == caught.value.reason == reason


def test_the_limit_itself_is_allowed(picture):
    assert decode(picture(size=(6, 4)), max_pixels=24).size == (6, 4)
    with pytest.raises(BadImage, match=r"claims 6 x 4 pixels, more than 23"):
        decode(picture(size=(6, 4)), max_pixels=23)


VALID = [
    encoded(Image.fromarray(np.random.default_rng(1).integers(0, 256, (9, 7, 3), dtype=np.uint8)), format)
    for format in ("JPEG", "PNG", "GIF", "TIFF", "WEBP", "BMP")
]


@settings(max_examples=300)
@given(
    content=st.sampled_from(VALID),
    edits=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4),
    cut=st.floats(0, 1),
)
def test_damage_of_any_kind_gives_a_picture_or_a_reason(content, edits, cut):
    damaged = bytearray(content)
    for place, value in edits:
        damaged[int(place * len(damaged))] = value
    reasons = []
    for side in (None, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                image, _ = _decode(bytes(damaged[: round(cut * len(damaged))]), 10_000, side)
            except BadImage as bad:
                reasons.append(bad.reason)
            else:
                assert image.mode == "RGB"
                assert image.width * image.height <= 10_000
    assert len(reasons) != 1, "inspected as sound, and not decoded later"
    assert len(set(reasons)) < 2
    assert "0x" not in "".join(reasons), "an address in memory differs from run to run"


def test_many_threads_read_a_folder_and_a_zip_alike(tmp_path, picture, write_files, write_zip):
    files = {f"photos/{i:02d}.png": picture((i, 2 * i, 3 * i), format="PNG") for i in range(40)}
    for root in (write_files(tmp_path / "folder", files), write_zip(tmp_path / "photos.zip", files)):
        with ImageSource(root) as source, ThreadPoolExecutor(8) as pool:
            assert source.files() == sorted(files)
            images = pool.map(lambda path, source=source: source.open(path, LIMIT), source.files() * 5)
            assert [image.getpixel((0, 0)) for image in images] == [(i, 2 * i, 3 * i) for i in range(40)] * 5


def test_a_folder_named_like_a_picture_is_unreadable(tmp_path):
    (tmp_path / "a.jpg").mkdir()
    with ImageSource(tmp_path) as source, pytest.raises(BadImage, match=r"^unreadable: Is a directory$"):
        source.read("a.jpg")


def test_all_are_inspected_in_order_and_bad_ones_do_not_stop_it(tmp_path, picture, write_files):
    exif = Image.Exif()
    exif[0x0112] = 8
    files = {f"{i}.png": picture(size=(i + 1, 5), format="PNG") for i in range(30)}
    files |= {"7.png": b"", "9.png": picture(size=(6, 4), exif=exif)}
    write_files(tmp_path, files)
    with ImageSource(tmp_path) as source, Reporter(tmp_path / "log") as reporter:
        reason, size, digest, decoders = inspect_all(source, [f"{i}.png" for i in range(30)], LIMIT, reporter)
    assert [row for row, why in enumerate(reason) if why] == [7]
    assert size.tolist() == [[0, 0] if i == 7 else [4, 6] if i == 9 else [i + 1, 5] for i in range(30)]
    assert digest[9].tobytes() == hashlib.sha256(files["9.png"]).digest()
    assert decoders == {}
    assert "30/30 images" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("format", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_the_size_is_that_of_the_upright_picture(tmp_path, write_files, format):
    files = {}
    for orientation in range(1, 10):
        exif = Image.Exif()
        exif[0x0112] = orientation
        files[f"{orientation}.{format}"] = encoded(Image.new("RGB", (10, 9)), format, exif=exif)
    write_files(tmp_path, files)
    with ImageSource(tmp_path) as source, Reporter(tmp_path / "log") as reporter:
        sizes = [tuple(size) for size in inspect_all(source, list(files), LIMIT, reporter).size.tolist()]
    assert sizes == [decode(content, LIMIT).size for content in files.values()]
    assert {(10, 9), (9, 10)} == set(sizes)


def test_avif_is_read() -> None:
    assert (
        np.abs(pixels(encoded(Image.new("RGB", (9, 7), (200, 30, 60)), "AVIF")).astype(int) - (200, 30, 60)).max() < 4
    )


def test_heic_is_read_with_its_extra_and_names_it_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heif = pytest.importorskip("pillow_heif")
    stream = io.BytesIO()
    heif.from_pillow(Image.new("RGB", (64, 48), (200, 30, 60))).save(stream)
    assert np.abs(pixels(stream.getvalue()).astype(int) - (200, 30, 60)).max() < 6
    (tmp_path / "a.heic").write_bytes(stream.getvalue())
    with ImageSource(tmp_path) as source, Reporter() as reporter:
        assert inspect_all(source, ["a.heic"], LIMIT, reporter).decoders == {"pillow-heif": heif.__version__}
    monkeypatch.setattr("vitcapr.data.images._reads_heif", lambda: False)
    with pytest.raises(BadImage, match=r"pip install 'vitcapr\[heic\]'"):
        decode(stream.getvalue(), LIMIT)


def test_opening(tmp_path: Path) -> None:
    Image.new("L", (3, 2), 7).save(tmp_path / "grey.png")
    (tmp_path / "a.png").write_bytes(b"x")
    assert open_photograph(tmp_path / "grey.png").getpixel((0, 0)) == (7, 7, 7)
    with pytest.raises(BadImage, match="not an image"):
        open_photograph(tmp_path / "a.png")
    with pytest.raises(BadImage, match="Is a directory"):
        open_photograph(tmp_path)


@pytest.mark.parametrize(("file_format", "look"), [("JPEG", {}), ("WEBP", {"quality": 75})])
def test_a_thumbnail_keeps_its_shape_and_drops_the_rest(file_format: str, look: dict[str, int]) -> None:
    for size, small_size in (((1000, 500), (320, 160)), ((30, 20), (30, 20))):
        picture = Image.new("RGB", size, (200, 30, 30))
        picture.info = {"exif": b"x" * 60_000, "icc_profile": b"y" * 60_000}
        content = thumbnail(picture, 320, file_format, **look)
        assert len(content) < 3_000
        with Image.open(io.BytesIO(content)) as small:
            assert (small.format, small.size) == (file_format, small_size)
