import errno
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.checkpoints import snapshot
from vitcapr.errors import UserError
from vitcapr.store.writer import LOCK, claimed

HOLD = """
import sys
from pathlib import Path
from vitcapr.store.writer import claimed
with claimed(Path(sys.argv[1]), range(int(sys.argv[2]), int(sys.argv[3])), print):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another(store: Path, first: int, last: int) -> Iterator[Callable[[], None]]:
    """Another process holds chunks ``first`` to ``last - 1``; the function yielded makes it end."""
    command = [sys.executable, "-c", HOLD, str(store), str(first), str(last)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process.stdin.close
        finally:
            process.kill()


def test_other_chunks_are_free_and_the_same_ones_wait(tmp_path: Path) -> None:
    messages: list[str] = []
    with held_by_another(tmp_path, 2, 4) as release:
        with claimed(tmp_path, range(2), messages.append), claimed(tmp_path, range(4, 9), messages.append):
            assert messages == []
        threading.Timer(0.3, release).start()
        with claimed(tmp_path, range(3, 6), messages.append):
            assert "waiting" in messages[0]


def test_two_that_extract_the_same_store_make_it_once(experiment: Any) -> None:
    """The second starts while the first has its chunks, and finds them finished when its turn comes."""
    one = experiment.extract("one")
    (store,) = (experiment.root / "results" / "stores").iterdir()
    whole = snapshot(store)
    (store / "checksums" / "000001.json").rename(store / "late.json")
    with held_by_another(store, 0, 3) as release:
        log = experiment.root / "extract.log"

        def finish() -> None:
            while "another process is writing the same files" not in log.read_text():
                time.sleep(0.02)
            (store / "late.json").rename(store / "checksums" / "000001.json")
            release()

        threading.Thread(target=finish, daemon=True).start()
        two = experiment.extract("two")
    assert "0 of 11 images to do" in log.read_text()
    assert json.loads(one.read_text()) == json.loads(two.read_text())
    assert snapshot(store) == whole


def test_sealing_leaves_the_temporary_files_of_a_running_task(experiment: Any) -> None:
    part = experiment.extract()
    (store,) = (experiment.root / "results" / "stores").iterdir()
    partial = store / "checksums" / ".000001.json.12345678.partial"
    partial.touch()
    with held_by_another(store, 0, 1):
        experiment.seal([part])
        assert partial.exists()
    experiment.seal([part])
    assert not partial.exists()


def test_without_write_permission_finished_stores_are_read_and_others_are_one_line(
    experiment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = experiment.run()
    real = os.open

    def refuse(path: Any, *arguments: Any) -> int:
        if str(path).endswith(LOCK):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    assert experiment.run("reader").fingerprint == store.fingerprint
    store["cls"].chunk_path(0).unlink()
    with pytest.raises(UserError, match=r"files are missing and you may not write here .* VITCAPR_STORES"):
        experiment.extract("reader")
