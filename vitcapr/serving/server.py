"""An HTTP server for one person: the page, and ``POST /caption``, which answers a picture with JSON.

A stranger's page in the same browser cannot use it: the header Host must name this machine, and Origin this server.
"""

import io
import json
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from vitcapr.data.images import BadImage
from vitcapr.data.photographs import MAX_PIXELS
from vitcapr.errors import UserError
from vitcapr.hosts import names_this_machine
from vitcapr.serving.decoder import Decoder

if TYPE_CHECKING:
    from vitcapr.serving.answers import Answers

FILES = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
"""Path -> file beside this module and its type. Nothing else is served."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
CONNECTIONS = 32
"""More wait until one of these is closed."""
HEAD_SECONDS = 10.0
"""For the request line and the headers. A browser opens connections that it does not use at once."""
_DISCARDED = 1_000_000
"""Bytes of a refused upload that are read, so that the client reads the answer."""
_DISCARD_SECONDS = 1.0


@dataclass(frozen=True)
class Limits:
    """The bounds of an upload.

    Attributes:
        max_bytes: of the file.
        max_pixels: of the picture.
        seconds: for the transfer of the file, for its turn, and for its decoding.
        uploads: at once; more are refused.
    """

    max_bytes: int = 30_000_000
    max_pixels: int = MAX_PIXELS
    seconds: float = 30.0
    uploads: int = 4


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        self.status, self.reason = status, reason
        super().__init__(reason)


class CaptionServer(ThreadingHTTPServer):
    """The server; ``serve_forever`` runs it. It listens from the start, and :meth:`server_close` ends it.

    Args:
        host, port: where it listens; port 0 is any free one.

    Raises:
        UserError: it cannot listen there.
    """

    request_queue_size = CONNECTIONS

    def __init__(self, host: str, port: int, answers: "Answers", limits: Limits) -> None:
        self.host, self.answers, self.limits = host, answers, limits
        self.files = {path: (Path(__file__).with_name(name).read_bytes(), kind) for path, (name, kind) in FILES.items()}
        self.decoder = Decoder(limits.max_pixels, limits.seconds)
        self.uploads = threading.BoundedSemaphore(limits.uploads)
        self.turn = threading.Lock()
        self._connections = threading.BoundedSemaphore(CONNECTIONS)
        try:
            self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            remedy = "choose another --host or --port; --port 0 takes a free one"
            raise UserError(
                f"the server cannot listen: {reason}", where=f"{host}, port {port}", remedy=remedy
            ) from error

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.server_address[1]}/"

    def about(self) -> dict[str, Any]:
        return {**self.answers.about(), "limits": asdict(self.limits)}

    def caption(self, content: bytes) -> dict[str, Any]:
        """The answer to an uploaded file, when it is its turn."""
        if not self.turn.acquire(timeout=self.limits.seconds):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "busy with other photographs; try again")
        try:
            return self.answers.answer(self.decoder.decode(content))
        except BadImage as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, f"this image cannot be used: {error.reason}") from error
        finally:
            self.turn.release()

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's own asks a name server for the name of the machine.
        self.server_name, self.server_port = self.host, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        self._connections.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._connections.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def server_close(self) -> None:
        super().server_close()
        self.decoder.close()


class _Until(io.RawIOBase):
    """Reads a connection until a moment. The timeout of a socket bounds each read, but not their sum."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self.restart(seconds)

    def restart(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: CaptionServer
    default_request_version = "HTTP/1.0"
    """So that what is no request gets an answer with a head."""

    def setup(self) -> None:
        super().setup()
        self._until = _Until(self.connection, HEAD_SECONDS)
        self.rfile = io.BufferedReader(self._until)

    def do_GET(self) -> None:
        self._answer_with(self._get)

    def do_POST(self) -> None:
        self._answer_with(self._post)

    def _answer_with(self, answer: Callable[[], tuple[bytes, str]]) -> None:
        try:
            self._check_sender()
            content, kind = answer()
        except Refused as refused:
            self.send_error(refused.status, refused.reason)
        except Exception:
            self.send_error(HTTPStatus.INTERNAL_SERVER_ERROR, "the captioner failed; the terminal shows why")
            raise
        else:
            self._send(HTTPStatus.OK, content, kind)

    def _check_sender(self) -> None:
        hosts, origin = self.headers.get_all("Host", []), self.headers.get("Origin")
        if len(hosts) != 1 or not names_this_machine(hosts[0], self.server.host.lower()):
            raise Refused(HTTPStatus.MISDIRECTED_REQUEST, "the header Host names another machine")
        if origin is not None and origin.lower() != f"http://{hosts[0]}".lower():
            raise Refused(HTTPStatus.FORBIDDEN, "the request comes from the page of another site")

    def _get(self) -> tuple[bytes, str]:
        path = urlsplit(self.path).path
        if path == "/about":
            return _json(self.server.about())
        if path not in self.server.files:
            raise Refused(HTTPStatus.NOT_FOUND, "no such page")
        return self.server.files[path]

    def _post(self) -> tuple[bytes, str]:
        if self.path != "/caption":
            raise Refused(HTTPStatus.NOT_FOUND, "no such page; photographs are sent to /caption")
        length = self._length()
        if not self.server.uploads.acquire(blocking=False):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "busy with other photographs; try again")
        try:
            return _json(self.server.caption(self._body(length)))
        finally:
            self.server.uploads.release()

    def _length(self) -> int:
        given, most = self.headers.get_all("Content-Length", []), self.server.limits.max_bytes
        if len(given) != 1 or "Transfer-Encoding" in self.headers:
            raise Refused(HTTPStatus.LENGTH_REQUIRED, "the header Content-Length is needed, once")
        if not (given[0].isascii() and given[0].isdigit()):
            raise Refused(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
        if len(given[0]) > 18 or int(given[0]) > most:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the file has more than {most} bytes")
        return int(given[0])

    def _body(self, length: int) -> bytes:
        self._until.restart(self.server.limits.seconds)
        try:
            content = self.rfile.read(length)
        except TimeoutError as error:
            what = f"the file did not arrive in {self.server.limits.seconds:g} s"
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, what) from error
        if len(content) < length:
            raise Refused(HTTPStatus.BAD_REQUEST, f"only {len(content)} of {length} bytes arrived")
        return content

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Errors are JSON, too: ``{"error": ...}``. The connection is closed after each."""
        del explain
        self._send(code, *_json({"error": message or HTTPStatus(code).phrase}))
        self._discard()

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.connection.settimeout(self.server.limits.seconds)
        self.send_response(status)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("Retry-After", "1")
        for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **HEADERS}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _discard(self) -> None:
        """Read what is still under way: a connection closed before that takes the answer with it."""
        try:
            self.connection.shutdown(socket.SHUT_WR)
            self._until.restart(_DISCARD_SECONDS)
            left = _DISCARDED
            while left > 0 and (read := len(self.rfile.read1(1 << 16))):
                left -= read
        except OSError:
            pass

    def version_string(self) -> str:
        return "vitcapr"

    def log_message(self, format: str, *args: Any) -> None:
        """No line for each request: what a person uploads is nobody else's concern."""


def _json(content: dict[str, Any]) -> tuple[bytes, str]:
    return json.dumps(content, ensure_ascii=False).encode(errors="replace"), "application/json; charset=utf-8"
