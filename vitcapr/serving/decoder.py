"""Decodes uploaded pictures in a process of its own, which is killed if a file takes it too long."""

import multiprocessing
import signal
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from PIL import Image

from vitcapr.data.images import BadImage, decode

_BAD = b""
"""What comes before a reason; before pixels, their width and height come."""
_NUMBER = 4
"""Bytes of a width or of a height."""


class Decoder:
    """:func:`vitcapr.data.images.decode` with a limit of time. A file that ends the process harms no other upload.

    Args:
        max_pixels: a picture that claims more is refused.
        seconds: how long one file may take.
    """

    def __init__(self, max_pixels: int, seconds: float) -> None:
        self._max_pixels, self._seconds = max_pixels, seconds
        self._process: SpawnProcess | None = None

    def decode(self, content: bytes) -> Image.Image:
        """The picture upright, in RGB. One call at a time. The first one starts the process.

        Raises:
            BadImage: it is no usable picture, or takes too long.
        """
        try:
            if self._process is None or not self._process.is_alive():
                self.close()
                self._start()
            self._connection.send_bytes(content)
            if not self._connection.poll(self._seconds):
                self.close()
                raise BadImage(f"not decoded in {self._seconds:g} s")
            head, body = self._connection.recv_bytes(), self._connection.recv_bytes()
        except (EOFError, OSError) as error:
            self.close()
            raise BadImage("the decoder crashed on it") from error
        if head == _BAD:
            raise BadImage(body.decode())
        return Image.frombytes("RGB", (int.from_bytes(head[:_NUMBER]), int.from_bytes(head[_NUMBER:])), body)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_decode_all, args=(theirs, self._max_pixels), daemon=True)
        self._process.start()
        theirs.close()
        self._connection.recv_bytes()  # It has imported its libraries: the time of a file begins.


def _decode_all(connection: Connection, max_pixels: int) -> None:
    """Decode what arrives until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server.
    connection.send_bytes(b"ready")
    while True:
        try:
            content = connection.recv_bytes()
        except EOFError:
            return
        try:
            picture = decode(content, max_pixels)
            head = picture.width.to_bytes(_NUMBER) + picture.height.to_bytes(_NUMBER)
            body = picture.tobytes()
        except BadImage as error:
            head, body = _BAD, error.reason.encode(errors="replace")
        except MemoryError:
            head, body = _BAD, b"not enough memory to decode it"
        connection.send_bytes(head)
        connection.send_bytes(body)
