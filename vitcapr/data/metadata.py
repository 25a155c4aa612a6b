"""Takes the metadata out of PNG and JPEG files."""

import zlib
from collections.abc import Iterator

_PNG, _JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8"
_SCAN, _EXIF, _ADOBE, _COMMENT, _FILL = 0xDA, 0xE1, 0xEE, 0xFE, 0xFF


def without_metadata(content: bytes) -> bytes:
    """The file with no more than what its pixels, transparency, colours and Exif need; other formats unchanged.

    Nothing is decompressed.
    """
    parts = {_PNG: _png_chunks, _JPEG: _jpeg_segments}
    return next((b"".join(parts[start](content)) for start in parts if content.startswith(start)), content)


def _png_chunks(content: bytes) -> Iterator[bytes]:
    """Of the chunks that a decoder may skip, only transparency and Exif, if their checksum is right."""
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
    """Without the comments and application data before the first scan, but for Exif and a whole segment of Adobe."""
    yield _JPEG
    start = len(_JPEG)
    while start + 4 <= len(content) and content[start] == 0xFF and (kind := content[start + 1]) != _SCAN:
        length = -1 if kind == _FILL else int.from_bytes(content[start + 2 : start + 4], "big")
        droppable = kind in (_COMMENT, _FILL) or 0xE0 <= kind <= 0xEF
        if not droppable or kind == _EXIF or (kind == _ADOBE and length >= 12):
            yield content[start : start + 2 + length]
        start += 2 + length
    yield content[start:]
