"""The page and its endpoint on a very small experiment, and uploads that are not photographs."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import vitcapr
from tests.browser import running
from tests.data_sets import encoded
from vitcapr.data.photographs import open_image
from vitcapr.errors import UserError
from vitcapr.extensions.applications.caption_page import HEADERS, CaptionPage, Limits, TrainingImages, usual_cosine
from vitcapr.extensions.applications.commands.serve import PageServer
from vitcapr.progress import Reporter

ATTENTION, WORDS = "results/toy/captioners/patch_attention", "results/toy/retrievers/words"
PHOTOGRAPH = "photos/photo 03.png"
SMALL = Limits(max_bytes=20_000, max_pixels=10_000, seconds=60, uploads=3)
HURRIED = replace(SMALL, seconds=1.0)


@pytest.fixture(scope="module")
def page(_experiment: Path) -> CaptionPage:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(_experiment)
        patch.setenv("VITCAPR_BACKBONES", str(_experiment / "backbones"))
        page = CaptionPage(vitcapr.load_captioner(ATTENTION, n_best=2), vitcapr.load_retriever(WORDS), SMALL)
        page.answer(Image.new("RGB", (9, 9)))
    return page


@pytest.fixture(scope="module")
def server(page: CaptionPage) -> Iterator[PageServer]:
    with running(PageServer(page.routes, "127.0.0.1", 0, HEADERS)) as server:
        yield server


def ask(
    server: PageServer, path: str, body: bytes | None = None, *, method: str | None = None, **headers: str
) -> tuple[HTTPResponse, Any]:
    """The response and its content; headers with ``_`` for ``-``."""
    with closing(HTTPConnection("127.0.0.1", server.port, timeout=120)) as connection:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method or ("GET" if body is None else "POST"), path, body, given)
        response = connection.getresponse()
        content = response.read()
    is_json = response.headers["Content-Type"].startswith("application/json")
    return response, json.loads(content) if is_json else content.decode()


def upload(*headers: str) -> bytes:
    return "\r\n".join(["POST /caption HTTP/1.1", "Host: localhost", *headers, "", ""]).encode()


def picture(kind: str, width: int, height: int) -> bytes:
    return encoded(Image.new("RGB", (width, height)), kind)


def test_a_photograph_gets_the_caption_the_words_and_the_nearest_captions(server: PageServer, project: Path) -> None:
    response, answer = ask(server, "/caption", Path(PHOTOGRAPH).read_bytes())
    assert response.status == 200
    captioner, retriever = vitcapr.load_captioner(ATTENTION, n_best=2), vitcapr.load_retriever(WORDS)
    expected = captioner.caption(project / PHOTOGRAPH, attention=True)[0]
    assert answer["caption"] == expected.caption == answer["candidates"][0]["caption"]
    assert [one["caption"] for one in answer["candidates"]] == [one.caption for one in expected.candidates]
    assert [word["word"] for word in answer["words"]] == list(expected.candidates[0].tokens)
    assert expected.attention is not None
    for word, attention in zip(answer["words"], expected.attention, strict=True):
        assert [len(row) for row in word["attention"]] == [2, 2]
        assert np.asarray(word["attention"]) == pytest.approx(np.asarray(attention), abs=1e-4)
    nearest = retriever.nearest("captions", retriever.query(None, project / PHOTOGRAPH), 5)
    assert [one["caption"] for one in answer["nearest"]] == nearest["text"].tolist()
    assert [one["cosine"] for one in answer["nearest"]] == pytest.approx(nearest["cosine"].tolist(), abs=1e-3)
    assert answer["picture"].startswith("data:image/jpeg;base64,")


def test_a_captioner_without_attention_and_no_retriever(project: Path) -> None:
    page = CaptionPage(vitcapr.load_captioner(project / "results/toy/captioners/baseline"))
    answer = page.answer(Image.open(PHOTOGRAPH).convert("RGB"))
    assert answer["nearest"] == []
    assert answer["words"]
    assert all(word["attention"] is None for word in answer["words"])


@pytest.mark.parametrize(
    ("content", "status", "reason"),
    [
        (b"", 422, "this image cannot be used: empty file"),
        (b"<html><script>alert(1)</script>", 422, "this image cannot be used: a web page, not an image"),
        (
            picture("JPEG", 50, 50)[:-9],
            422,
            "this image cannot be used: damaged: image file is truncated (2 bytes not processed)",
        ),
        (picture("PNG", 101, 100), 422, "this image cannot be used: claims 101 x 100 pixels, more than 10000"),
        (b"x" * 20_001, 413, "the file has more than 20000 bytes"),
    ],
)
def test_what_is_no_photograph_is_refused_in_one_line(
    server: PageServer, content: bytes, status: int, reason: str
) -> None:
    response, answer = ask(server, "/caption", content)
    assert (response.status, answer["error"]) == (status, reason)


def test_a_file_that_dribbles_in_is_cut_off(
    server: PageServer, page: CaptionPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time, but all of them would not."""
    monkeypatch.setattr(page, "limits", HURRIED)
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as connection:
        connection.sendall(upload("Content-Length: 1000"))
        connection.settimeout(0.1)
        answer = b""
        while not answer:
            connection.sendall(b"x")
            try:
                answer = connection.recv(10_000)
            except TimeoutError:
                assert time.monotonic() - begun < 60
    assert b" 408 " in answer.splitlines()[0]
    assert time.monotonic() - begun >= HURRIED.seconds


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:80", "localhost.attacker.example", "[", ""])
def test_another_host_is_refused(server: PageServer, host: str) -> None:
    for path, body in (("/", None), ("/caption", b"x")):
        response, answer = ask(server, path, body, Host=host)
        assert response.status == 421
        assert "another machine" in answer["error"]


@pytest.mark.parametrize("host", ["localhost:9000", "LOCALHOST", "127.0.0.1", "[::1]:8000", "192.168.0.2:8000"])
def test_this_machine_has_several_names(server: PageServer, host: str) -> None:
    assert ask(server, "/about", Host=host)[0].status == 200


def test_the_page_of_another_site_cannot_use_it(server: PageServer, project: Path) -> None:
    photograph, own = (project / PHOTOGRAPH).read_bytes(), f"127.0.0.1:{server.port}"
    for origin in ("http://attacker.example", "null", f"http://127.0.0.1:{server.port - 1}", f"https://{own}"):
        response, answer = ask(server, "/caption", photograph, Origin=origin)
        assert (response.status, answer["error"]) == (403, "the request comes from the page of another site")
    response, _ = ask(server, "/caption", photograph, Origin=f"http://{own}")
    assert response.status == 200
    assert "Access-Control-Allow-Origin" not in response.headers


def test_it_serves_its_own_files_and_nothing_else(server: PageServer) -> None:
    for path in ("/../serve.py", "/serve.py", "/%2e%2e/serve.py", "//etc/passwd", "/etc/passwd"):
        assert ask(server, path)[0].status == 404
    for number in ("9" * 5000, "-1", "a", "99"):
        assert ask(server, f"/samples/{number}")[1] == {"error": "no such sample"}
    for path in ("/", "/page.css", "/page.js"):
        response, content = ask(server, path)
        assert response.status == 200
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert re.findall(r"https?://", content) == []
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|style=|onclick=", content)
    about = ask(server, "/about")[1]
    assert (about["captioner"], about["retriever"]) == ("patch_attention", "words")
    assert about["limits"]["max_bytes"] == SMALL.max_bytes


def test_the_page_says_what_is_loading_and_a_photograph_waits(
    server: PageServer, page: CaptionPage, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, plain, report, ended = threading.Event(), page.answer, Reporter(), threading.Event()
    monkeypatch.setattr(page, "answer", lambda picture: gate.wait(60) and plain(picture))
    page.load(report, ended.set)
    with report.track("embed", 1000, "captions") as tracker, ThreadPoolExecutor(1) as pool:
        assert ask(server, "/about")[1] == {"loading": "Loading the models"}
        tracker.advance(300)
        assert ask(server, "/about")[1] == {"loading": "embed: 300 of 1,000 captions"}
        waiting = pool.submit(ask, server, "/caption", (project / PHOTOGRAPH).read_bytes())
        gate.set()
        assert "caption" in waiting.result()[1]
    assert ask(server, "/about")[1]["captioner"] == "patch_attention"

    def broken(_: Image.Image) -> dict[str, Any]:
        raise UserError("no vectors")

    monkeypatch.setattr(page, "answer", broken)
    page.load(report, ended.set)
    assert ended.wait(60)
    assert str(page.error) == "no vectors"


def test_several_at_once_and_more_wait(
    server: PageServer, page: CaptionPage, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photograph, gate = (project / PHOTOGRAPH).read_bytes(), threading.Event()
    plain, asked = page.answer, []

    def gated(picture: Image.Image) -> dict[str, Any]:
        asked.append(picture)
        assert gate.wait(60)
        assert len(asked) == 1  # one photograph at a time
        asked.pop()
        return plain(picture)

    expected = ask(server, "/caption", photograph)[1]
    monkeypatch.setattr(page, "answer", gated)
    with ThreadPoolExecutor(SMALL.uploads + 1) as pool:
        several = [pool.submit(ask, server, "/caption", photograph) for _ in range(SMALL.uploads + 1)]
        wait_until(page._uploads.locked)
        assert ask(server, "/about")[0].status == 200
        gate.set()
        assert [each.result()[1] for each in several] == [expected] * (SMALL.uploads + 1)
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(SMALL.uploads)]
    for connection in slow:
        connection.sendall(upload("Content-Length: 1000"))
    wait_until(page._uploads.locked)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, server, "/caption", photograph)
        for connection in slow:
            connection.close()
        assert waiting.result()[0].status == 200


def test_the_end_refuses_an_upload_in_flight(
    page: CaptionPage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("vitcapr.extensions.applications.commands.serve._GRACE_SECONDS", 0.2)
    with (
        running(PageServer(page.routes, "127.0.0.1", 0, HEADERS)) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection,
    ):
        connection.sendall(upload("Content-Length: 1000"))
        wait_until(lambda: server.server_state.tasks)
        server.should_exit = True
        answer = b"".join(iter(lambda: connection.recv(10_000), b""))
    assert b" 503 " in answer.splitlines()[0]
    assert json.loads(answer.splitlines()[-1]) == {"error": "the server was stopped before the answer"}
    assert "Traceback" not in caplog.text


def wait_until(happens: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_mistake_of_ours_is_an_error_and_the_server_goes_on(
    server: PageServer,
    page: CaptionPage,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    photograph = (project / PHOTOGRAPH).read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr(page, "answer", lambda _: 1 / 0)
        response, answer = ask(server, "/caption", photograph)
    assert response.status == 500
    assert "ZeroDivision" not in str(answer)
    assert ask(server, "/caption", photograph)[0].status == 200
    assert "ZeroDivisionError" in caplog.text


def test_in_the_background_only_sigterm_ends_it() -> None:
    """A shell lets a background process ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        server = PageServer([], "127.0.0.1", 0)
    finally:
        signal.signal(signal.SIGINT, before)
    for number, ends in ((signal.SIGINT, False), (signal.SIGTERM, True)):
        server.handle_exit(number, None)
        assert server.should_exit == ends
    server.socket.close()


def test_the_command_from_start_to_ctrl_c(project: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "vitcapr", "serve", ATTENTION, "--retriever", WORDS, "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/ captions photographs; Ctrl-C stops it\n", line)
            assert found is not None, line
            with closing(HTTPConnection("127.0.0.1", int(found[1]), timeout=120)) as connection:
                connection.request("POST", "/caption", (project / PHOTOGRAPH).read_bytes())
                answer = json.loads(connection.getresponse().read())
            assert len(answer["nearest"]) == 5
            assert list(tmp_path.iterdir()) != []
            process.send_signal(signal.SIGINT)
            rest, errors = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, rest) == (0, "stopped\n")
    assert re.fullmatch(r"(embed: .*\s)*", errors), errors  # Progress, after two seconds.
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_one_line(server: PageServer) -> None:
    with pytest.raises(UserError, match=r"cannot listen: Address already in use .*; 0 takes a free one"):
        PageServer([], "127.0.0.1", server.port)
    with pytest.raises(UserError, match="cannot listen"):
        PageServer([], "192.0.2.1", 0)


def test_the_usual_cosine_by_hand() -> None:
    """Of three vectors, the nearest other one has cosine 0.8, 0.8 and 0.6; a hundredth of the way from 0.6 to 0.8."""
    assert usual_cosine(np.array([[1.0, 0, 0], [0.8, 0.6, 0], [0, 1.0, 0]])) == pytest.approx(0.604)


def test_a_training_image_is_usual_and_samples_are_test_images(project: Path) -> None:
    captioner = vitcapr.load_captioner(ATTENTION)
    images = TrainingImages(captioner)
    assert images.samples == ["photo 03.png", "photo 07.png", "photo 11.png"]
    assert images.sample(0) == Path(PHOTOGRAPH).read_bytes()
    likeness = images.likeness(open_image("photos/photo 00.png"))
    assert likeness is not None
    assert likeness["cosine"] == pytest.approx(1, abs=1e-3)
    assert likeness["usual"] < 1
    (project / "results/toy/data").rename(project / "away")
    try:
        images = TrainingImages(captioner)
        assert (images.samples, images.likeness(Image.new("RGB", (9, 9)))) == ([], None)
    finally:
        (project / "away").rename(project / "results/toy/data")
