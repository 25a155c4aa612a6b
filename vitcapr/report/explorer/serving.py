"""Serves the explorer's folder to this machine."""

from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer

from vitcapr.hosts import names_this_machine

HOST = "127.0.0.1"


class _Files(SimpleHTTPRequestHandler):
    """Files of one folder, for pages of this server only."""

    def do_GET(self) -> None:
        if self._is_local():
            super().do_GET()

    def do_HEAD(self) -> None:
        if self._is_local():
            super().do_HEAD()

    def _is_local(self) -> bool:
        local = names_this_machine(self.headers.get("Host", ""))
        if not local:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
        return local

    def log_message(self, format: str, *arguments: object) -> None:
        """A line for each picture would hide the address."""


class _Server(ThreadingTCPServer):
    """Not HTTPServer, which asks a name server for the name of the machine."""

    allow_reuse_address = True
    daemon_threads = True


def server_of(folder: Path, port: int) -> ThreadingTCPServer:
    """A server of ``folder`` on the loopback address.

    Args:
        port: 0 for any that is free.

    Raises:
        OSError: the port is taken.
    """
    return _Server((HOST, port), partial(_Files, directory=str(folder)))
