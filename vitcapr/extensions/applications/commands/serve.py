"""Caption photographs in the browser, on a page of this machine."""

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vitcapr.api.trained_captioner import load_captioner
from vitcapr.commands.main import Device, typer_app
from vitcapr.errors import UserError
from vitcapr.extensions.applications.options import Backbone, BeamSize, Decoding, LengthPenalty, NBest

_ENDS = (signal.SIGINT, signal.SIGTERM)
_GRACE_SECONDS = 5
"""Seconds for answers that are under way at Ctrl-C."""


def main(
    captioner: Annotated[Path, typer.Argument(help="Folder of the trained captioner, or of an experiment with one.")],
    retriever: Annotated[
        Path | None, typer.Option(help="Folder of a trained retriever: show the nearest captions of its data set.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any other address exposes the server.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 is any free one.")] = 8000,
    decoding: Decoding = None,
    n_best: NBest = None,
    beam_size: BeamSize = None,
    length_penalty: LengthPenalty = None,
    device: Device = "auto",
    backbone: Backbone = None,
) -> None:
    """Serve a page on which one drops a photograph and sees its caption, until Ctrl-C or SIGTERM.

    The page shows where the captioner looked for each word and, with a retriever, the nearest captions of its data
    set. POST /caption answers a picture with the same as JSON. Photographs are not stored.
    """
    from vitcapr.api.trained_retriever import load_retriever
    from vitcapr.extensions.applications.caption_page import HEADERS, CaptionPage
    from vitcapr.progress import Reporter

    reporter = Reporter()
    with until_stopped():
        opened = load_captioner(
            captioner,
            decoding=decoding,
            n_best=n_best,
            beam_size=beam_size,
            length_penalty=length_penalty,
            device=device,
            backbone=backbone,
        )
        searched = None
        if retriever is not None:
            searched = load_retriever(retriever, device=opened.device, backbone=opened.backbone, reporter=reporter)
        page = CaptionPage(opened, searched)
        server = PageServer(page.routes, host, port, HEADERS)
        page.load(reporter, server.stop)
        if host not in ("localhost", "::1") and not host.startswith("127."):
            reporter.line("everybody who reaches this machine can use the page")
        print(f"{server.url} captions photographs; Ctrl-C stops it", flush=True)
        server.run()
        if page.error is not None:
            raise page.error
    print("stopped")


def names_this_machine(host: str, *own: str) -> bool:
    """Return whether a Host header is an address or a name of this machine, or one of its ``own`` in lower case.

    The name of another site may lead here (DNS rebinding), so that its pages could read the answers.
    """
    with suppress(ValueError):
        name = urlsplit(f"//{host}").hostname or ""
        return name in ("localhost", socket.gethostname().lower(), *own) or bool(ipaddress.ip_address(name))
    return False


class OwnPagesOnly:
    """Refuses what another site's page in the same browser sends.

    The header Host must name this machine, and Origin, if there is one, this server.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app, self._host = app, host.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent = Headers(scope=scope)
        hosts, origin = sent.getlist("host"), sent.get("origin")
        app = self._app
        if len(hosts) != 1 or not names_this_machine(hosts[0], self._host):
            app = _error(HTTPStatus.MISDIRECTED_REQUEST, "the header Host names another machine")
        elif origin is not None and origin.lower() != f"http://{hosts[0]}".lower():
            app = _error(HTTPStatus.FORBIDDEN, "the request comes from the page of another site")
        await app(scope, receive, send)


class AnsweredAtTheEnd:
    """Answers a request that the end of the server cuts off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sent: list[Message] = []

        async def note(message: Message) -> None:
            sent.append(message)
            await send(message)

        try:
            await self._app(scope, receive, note)
        except asyncio.CancelledError:
            if not sent:
                headers = {"Connection": "close"}
                app = _error(HTTPStatus.SERVICE_UNAVAILABLE, "the server was stopped before the answer", headers)
                await app(scope, receive, send)


class PageServer(uvicorn.Server):
    """A server of ``routes``. It listens from the start; ``run`` answers until Ctrl-C, SIGTERM or ``should_exit``.

    Errors are JSON: ``{"error": ...}``. An exception of ours is a traceback in the terminal.

    Args:
        host, port: where it listens; port 0 is any free one.
        headers: of every response.

    Raises:
        UserError: it cannot listen there.
    """

    def __init__(
        self, routes: Sequence[BaseRoute], host: str, port: int, headers: Mapping[str, str] | None = None
    ) -> None:
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            self.socket = socket.create_server((host, port), family=family)
        except OSError as error:
            what, where = f"the server cannot listen: {error.strerror}", f"{host}, port {port}"
            raise UserError(what, where=where, remedy="choose another port; 0 takes a free one") from error
        self.port: int = self.socket.getsockname()[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/"
        app = Starlette(
            routes=routes,
            middleware=[Middleware(AnsweredAtTheEnd), Middleware(OwnPagesOnly, host=host)],
            exception_handlers={HTTPException: _refused, Exception: _failed},
        )
        options: dict[str, Any] = {"lifespan": "off", "log_config": None, "access_log": False, "server_header": False}
        options["headers"] = list((headers or {}).items())
        self._ignored = _ignored()
        super().__init__(uvicorn.Config(app, timeout_graceful_shutdown=_GRACE_SECONDS, **options))

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        super().run(sockets or [self.socket])

    def stop(self) -> None:
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Uvicorn catches signals that this process ignored."""
        if sig not in self._ignored:
            super().handle_exit(sig, frame)


def _ignored() -> set[int]:
    """Return the signals of an end that this process ignores, as a shell lets it ignore SIGINT in the background."""
    return {number for number in _ENDS if signal.getsignal(number) is signal.SIG_IGN}


@contextmanager
def until_stopped() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block, unless this process ignores them."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in set(_ENDS) - _ignored()}
    try:
        with suppress(KeyboardInterrupt):
            yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _error(status: int, reason: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": reason}, status, headers)


async def _refused(_: Request, error: Any) -> JSONResponse:
    return _error(error.status_code, error.detail, error.headers)


async def _failed(_: Request, __: Exception) -> JSONResponse:
    return _error(HTTPStatus.INTERNAL_SERVER_ERROR, "the program failed; the terminal shows why")


app = typer_app(main)
