"""Takes the metadata out of PNG and JPEG files: Pillow refuses sound pictures because of large or damaged metadata."""

import zlib
from collections.abc import Iterator

_PNG = b"\x89PNG\r\n\x1a\n"
_COMMENT, _SCAN, _EXIF, _ADOBE = 0xFE, 0xDA, 0xE1, 0xEE


def without_metadata(content: bytes) -> bytes:
    """A PNG or JPEG file with no more than its pixels, transparency, colour transform and Exif need; others as they
    are. Nothing is decompressed."""
    if content.startswith(_PNG):
        return b"".join(_png_chunks(content))
    return b"".join(_jpeg_segments(content)) if content.startswith(b"\xff\xd8") else content


def _png_chunks(content: bytes) -> Iterator[bytes]:
    """Of the chunks that a decoder may skip, only transparency and Exif, if their checksum is right."""
    yield _PNG
    start = len(_PNG)
    while start + 8 <= len(content):
        end = start + 12 + int.from_bytes(content[start : start + 4], "big")
        chunk = content[start:end]
        kind = chunk[4:8]
        needed = not kind[0] & 0x20
        if needed or (kind in (b"tRNS", b"eXIf") and zlib.crc32(chunk[4:-4]) == int.from_bytes(chunk[-4:], "big")):
            yield chunk
        start = end


def _jpeg_segments(content: bytes) -> Iterator[bytes]:
    """Up to the first scan without comments and application data, but Exif and a whole segment of Adobe."""
    yield content[:2]
    start = 2
    while start + 4 <= len(content) and content[start] == 0xFF and content[start + 1] != _SCAN:
        marker = content[start + 1]
        end = start + 2 + int.from_bytes(content[start + 2 : start + 4], "big")
        if marker == 0xFF:  # A byte that fills.
            end = start + 1
        elif (
            (marker != _COMMENT and not 0xE0 <= marker <= 0xEF)
            or marker == _EXIF
            or (marker == _ADOBE and end - start > 13)
        ):
            yield content[start:end]
        start = end
    yield content[start:]
