"""Decodes an uploaded picture in a process of its own: ``python -m vitcapr.commands.decode_upload MAX_PIXELS``.

A file that crashes the decoder, or takes it too long, harms no other upload.
"""

import json
import subprocess
import sys

from PIL import Image

from vitcapr.data.images import BadImage, decode


def decode_apart(content: bytes, max_pixels: int, seconds: float) -> Image.Image:
    """:func:`vitcapr.data.images.decode` in a process that ends after ``seconds``.

    Raises:
        BadImage: it is no usable picture, takes too long, or crashes the decoder.
    """
    command = [sys.executable, "-m", __name__, str(max_pixels)]
    try:
        done = subprocess.run(command, input=content, capture_output=True, timeout=seconds, check=True)
    except subprocess.TimeoutExpired as error:
        raise BadImage(f"not decoded in {seconds:g} s") from error
    except subprocess.CalledProcessError as error:
        raise BadImage("the decoder crashed on it") from error
    head, _, pixels = done.stdout.partition(b"\n")
    found = json.loads(head)
    if "bad" in found:
        raise BadImage(found["bad"])
    return Image.frombytes("RGB", found["size"], pixels)


def main() -> None:
    """Read a file from the standard input, and write its size or what is wrong with it, and its pixels."""
    try:
        picture = decode(sys.stdin.buffer.read(), int(sys.argv[1]))
    except BadImage as error:
        print(json.dumps({"bad": error.reason}))
        return
    print(json.dumps({"size": picture.size}), flush=True)
    sys.stdout.buffer.write(picture.tobytes())


if __name__ == "__main__":
    main()
