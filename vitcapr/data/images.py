"""Decodes photographs of any format to 8-bit RGB, or refuses them with a reason."""

import base64
import hashlib
import io
import warnings
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from vitcapr.data.archive import Archive, DamagedMember, TarFiles, split_tar_path
from vitcapr.data.parquet_pictures import TablePictures, split_table_path
from vitcapr.progress import Reporter
from vitcapr.workers import usable_cores

Image.init()  # Left to Image.open, threads would race to register the formats.
# Pillow knows more; some of them start other programs (EPS) or hide a picture of another size (ICO).
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "JPEG2000", "AVIF")
SUFFIXES = (
    *(".jpg", ".jpeg", ".png", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".jp2"),
    *(".avif", ".heic", ".heif"),
)
HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")
BACKGROUND = (255, 255, 255)
_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
_SCAN, _EXIF, _ADOBE, _COMMENT, _FILL = 0xDA, 0xE1, 0xEE, 0xFE, 0xFF
_AHEAD = 1024
"""Images that wait for a thread: a request for each of millions would not fit in memory."""

# What is wrong with a file is said once, by BadImage, and not beside it in lines of Pillow's own.
warnings.filterwarnings("ignore", module=r"PIL\.")


class BadImage(Exception):
    """A file that is not a usable picture; the message gives the reason and is always the same for the same file."""

    @property
    def reason(self) -> str:
        return str(self)


class ImageSource(Archive):
    """Pictures below a folder, or in a zip, in tars or in Parquet files; many threads may call every method."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._tables = TablePictures(root)
        self.tars = TarFiles(root)

    def read(self, path: str) -> bytes:
        """Return the bytes of a file, also inside a tar (``a.tar/b.jpg``), or of a row of a Parquet file.

        :func:`vitcapr.data.parquet_pictures.picture_path` names rows.

        Raises:
            BadImage: it is not there, or cannot be read.
            UserError: a tar or a Parquet file is damaged as a whole.
        """
        try:
            if split_table_path(path):
                return self._tables.read(path)
            if inside := split_tar_path(path):
                return self.tars.read(*inside)
            return super().read(path)
        except FileNotFoundError as error:
            raise BadImage("no such file") from error
        except (OSError, DamagedMember) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise BadImage(f"unreadable: {reason}") from error

    def open(self, path: str, max_pixels: int) -> Image.Image:
        """Return the picture at ``path``, as :func:`decode` gives it."""
        return decode(self.read(path), max_pixels)

    def close(self) -> None:
        super().close()
        self._tables.close()


def decode(content: bytes, max_pixels: int) -> Image.Image:
    """Decode a picture file as an upright 8-bit RGB picture.

    Upright by its EXIF orientation. Grey becomes three equal channels, 16 bits are scaled by 255/65535 and rounded,
    CMYK is converted, transparency (alpha, palette or colour key) is laid over white, of an animation the first frame
    counts. Safe to call from many threads.

    Args:
        content: the bytes of the file.
        max_pixels: a picture whose header claims more is refused before anything is decoded. Pillow's own limit, ``2 *
            PIL.Image.MAX_IMAGE_PIXELS`` (179 million), holds as well.

    Raises:
        BadImage: empty, not a picture, truncated or damaged, too large, or with pixels of unknown range.
    """
    return _decode(content, max_pixels)[0]


def decode_small(content: bytes, max_pixels: int, side: int) -> Image.Image:
    """Decode a picture like :func:`decode`, but a JPEG file only as large as its sides need to be at least ``side``."""
    return _decode(content, max_pixels, side)[0]


def _decode(content: bytes, max_pixels: int, side: int | None = None) -> tuple[Image.Image, tuple[int, int]]:
    """Decode a picture, and return its width and height when every pixel is decoded.

    ``side``: a JPEG file is decoded at the smallest eighth of its size whose sides are at least this long.
    """
    if not content:
        raise BadImage("empty file")
    start = content[:512].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<?xml", b"<body")):
        raise BadImage("a web page, not an image")
    heif = _is_heif(content)
    if heif and not _reads_heif():
        raise BadImage("a HEIC image, which needs the extra heic: pip install 'vitcapr[heic]'")
    try:
        with Image.open(io.BytesIO(content), formats=("HEIF",) if heif else FORMATS) as image:
            width, height = image.size
            if width * height > max_pixels:
                raise BadImage(f"claims {width} x {height} pixels, more than {max_pixels}")
            if side is not None:
                image.draft(None, (side, side))
            image.load()
            return as_rgb(image), (height, width) if _is_turned(image) else (width, height)
    except (BadImage, MemoryError):
        raise
    # A damaged file makes Pillow's decoders raise almost anything: OSError, SyntaxError, struct.error, IndexError...
    except Exception as error:
        # Pillow also refuses a sound picture for large or damaged metadata.
        if (bare := _without_metadata(content)) != content:
            return _decode(bare, max_pixels, side)
        if isinstance(error, UnidentifiedImageError):
            raise BadImage("not an image in a known format") from error
        if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
            raise BadImage("claims more pixels than Pillow opens") from error
        raise BadImage(f"damaged: {' '.join(str(error).split()) or type(error).__name__}") from error


def as_rgb(image: Image.Image) -> Image.Image:
    """Return an opened picture as :func:`decode` gives it: upright, 8-bit RGB."""
    return _upright(_to_rgb(image))


def _without_metadata(content: bytes) -> bytes:
    """Return a PNG or JPEG with no more than its pixels, transparency, colours and Exif need; others unchanged.

    Nothing is decompressed.
    """
    parts = {_PNG: _png_chunks, _JPEG: _jpeg_segments}
    return next((b"".join(parts[start](content)) for start in parts if content.startswith(start)), content)


def _png_chunks(content: bytes) -> Iterator[bytes]:
    """Yield the chunks that decide the picture; of optional ones only transparency and Exif, if intact."""
    yield _PNG
    start = len(_PNG)
    while start + 8 <= len(content):
        end = start + 12 + int.from_bytes(content[start : start + 4], "big")
        chunk, kind = content[start:end], content[start + 4 : start + 8]
        sound = kind in (b"tRNS", b"eXIf") and zlib.crc32(chunk[4:-4]) == int.from_bytes(chunk[-4:], "big")
        if sound or not kind[0] & 0x20:
            yield chunk
        start = end


def _jpeg_segments(content: bytes) -> Iterator[bytes]:
    """Yield the segments. Of comments and application data before the first scan, only Exif and Adobe's stay."""
    yield _JPEG
    start = len(_JPEG)
    while start + 4 <= len(content) and content[start] == 0xFF and (kind := content[start + 1]) != _SCAN:
        length = -1 if kind == _FILL else int.from_bytes(content[start + 2 : start + 4], "big")
        droppable = kind in (_COMMENT, _FILL) or 0xE0 <= kind <= 0xEF
        if not droppable or kind == _EXIF or (kind == _ADOBE and length >= 12):
            yield content[start : start + 2 + length]
        start += 2 + length
    yield content[start:]


class Inspected(NamedTuple):
    """Facts of N image files: the reason why each is unusable, sizes, digests and the version of pillow-heif.

    Sizes (N, 2) are width and height in pixels when upright; digests (N, 32) are the sha256 of the bytes; a usable file
    has an empty reason.
    """

    reason: npt.NDArray[np.object_]
    size: npt.NDArray[np.int32]
    digest: npt.NDArray[np.uint8]
    decoders: dict[str, str]


def inspect_all(source: ImageSource, paths: Sequence[str], max_pixels: int, reporter: Reporter) -> Inspected:
    """Read each of ``paths`` on every core; what is wrong is a reason and no error.

    A JPEG file is read whole and decoded at an eighth of its size, which finds the same damage in half the time.
    """
    reason, heif = np.full(len(paths), "", object), np.zeros(len(paths), bool)
    size, digest = np.zeros((len(paths), 2), np.int32), np.zeros((len(paths), 32), np.uint8)

    def inspect(row: int, path: str) -> None:
        try:
            content = source.read(path)
            size[row] = _decode(content, max_pixels, side=1)[1]
        except BadImage as bad:
            reason[row] = bad.reason
        else:
            digest[row] = np.frombuffer(hashlib.sha256(content).digest(), np.uint8)
            heif[row] = _is_heif(content)

    pool = ThreadPoolExecutor(max_workers=usable_cores(), thread_name_prefix="inspect")
    try:
        with reporter.track("checking images", len(paths), "images") as tracker:
            left = enumerate(paths)
            ahead = deque(pool.submit(inspect, *each) for each in islice(left, _AHEAD))
            while ahead:
                ahead.popleft().result()
                ahead.extend(pool.submit(inspect, *each) for each in islice(left, 1))
                tracker.advance()
    finally:
        pool.shutdown(cancel_futures=True)
    return Inspected(reason, size, digest, {"pillow-heif": version("pillow-heif")} if heif.any() else {})


def _is_heif(content: bytes) -> bool:
    return content[4:8] == b"ftyp" and content[8:12] in HEIF_BRANDS


@cache
def _reads_heif() -> bool:
    """Return whether Pillow can read HEIC, with the optional pillow-heif."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        return _scaled_to_8_bits(image)
    if image.mode == "F":
        raise BadImage("floating-point pixels of unknown range")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        opaque = Image.new("RGB", image.size, BACKGROUND)
        opaque.paste(image, mask=image.getchannel("A"))
        opaque.info = image.info
        return opaque
    return image.convert("RGB")


def _scaled_to_8_bits(image: Image.Image) -> Image.Image:
    """Scale 16-bit values to 8 bits; Pillow's own conversion clips them at 255, so nearly everything turns white."""
    values = np.asarray(image).astype(np.int64)
    if values.size and (values.min() < 0 or values.max() > 65535):
        raise BadImage("32-bit pixels of unknown range")
    grey = Image.fromarray(((values * 255 + 32767) // 65535).astype(np.uint8), mode="L").convert("RGB")
    grey.info = image.info
    return grey


def _is_turned(image: Image.Image) -> bool:
    """Return whether its EXIF orientation turns it by a quarter."""
    try:
        return image.getexif().get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8)
    except Exception:
        return False


def _upright(image: Image.Image) -> Image.Image:
    """Turn a picture upright by its EXIF; one with unreadable EXIF stays as it is stored."""
    try:
        return ImageOps.exif_transpose(image)
    except Exception:
        return image


def thumbnail(image: Image.Image, side: int = 320, file_format: str = "JPEG", **look: int) -> bytes:
    """Return an RGB image as a file of at most ``side`` pixels a side; smaller images keep their size."""
    small = image.copy()
    small.thumbnail((side, side), Image.Resampling.LANCZOS)
    small.info = {}  # EXIF and colour profile would come along, larger than the thumbnail itself.
    stream = io.BytesIO()
    small.save(stream, file_format, **(look or {"quality": 85}))
    return stream.getvalue()


def data_url(picture: bytes, kind: str = "jpeg") -> str:
    """Return the picture as a data URL, for the attribute ``src`` of an image."""
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode('ascii')}"
