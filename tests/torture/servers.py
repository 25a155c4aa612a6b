"""Hostile servers on this machine: what they answer is endless, compressed, silent, slow, or no HTTP at all."""

import gzip
import random
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.torture.runs import server
from tests.torture.tally import Tally

OK = b"HTTP/1.1 200 OK\r\n"
BOMB = gzip.compress(bytes(50 << 20), 1)
PATIENCE = 1.0
Answer = Callable[[socket.socket], None]


def endless(client: socket.socket) -> None:
    client.sendall(OK + b"\r\n")
    while True:
        client.sendall(b" " * (1 << 20))


def endless_chunks(client: socket.socket) -> None:
    client.sendall(OK + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        client.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")


def endless_headers(client: socket.socket) -> None:
    client.sendall(OK)
    while True:
        client.sendall(b"X: " + b"a" * 60_000 + b"\r\n")


def bomb(client: socket.socket) -> None:
    client.sendall(OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB)


def silent(_: socket.socket) -> None:
    time.sleep(30)


def silent_body(client: socket.socket) -> None:
    client.sendall(OK + b"Content-Length: 100\r\n\r\n{")
    time.sleep(30)


def slow(client: socket.socket) -> None:
    client.sendall(OK + b"Content-Length: 100000\r\n\r\n")
    for _ in range(600):
        client.sendall(b" ")
        time.sleep(0.3)


def cut_off(client: socket.socket) -> None:
    client.sendall(OK + b"Content-Length: 100000\r\n\r\n{}")


def redirected_for_ever(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")


def no_http(client: socket.socket) -> None:
    client.sendall(random.Random(0).randbytes(5000))


def wrong_status(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 999999 " + b"x" * 5000 + b"\r\nContent-Length: -5\r\n\r\n")


def nested(client: socket.socket) -> None:
    client.sendall(OK + b"Connection: close\r\n\r\n" + b"[" * 200_000)


def not_text(client: socket.socket) -> None:
    client.sendall(OK + b"Connection: close\r\n\r\n" + b"\xff\xfe\x00{" * 1000)


ANSWERS: tuple[Answer, ...] = (
    *(endless, endless_chunks, endless_headers, bomb, silent, silent_body, cut_off, redirected_for_ever, no_http),
    *(wrong_status, nested, not_text),
)


@contextmanager
def serving(answer: Answer) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(65536)
            answer(client)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.close()


def pull_from(answer: Answer, box: Path, tally: Tally) -> None:
    """The pull ends soon, with one line, and without the memory that the answer would take."""
    shutil.rmtree(box, ignore_errors=True)
    box.mkdir()
    with serving(answer) as port:
        url = f"http://127.0.0.1:{port}/store"
        arguments = ["features", "pull", url, "here", "--timeout", PATIENCE]
        run = server().run(box, arguments, seconds=60, limits={"RLIMIT_AS": 500 << 20})
    good = run.in_one_line and "out of memory" not in run.printed and not (box / "here").exists()
    tally.add("inputs, servers", answer.__name__, None if good else run.end)
    shutil.rmtree(box)
