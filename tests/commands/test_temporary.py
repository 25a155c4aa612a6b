"""Temporary folders: their own one for each command, and none left of a killed one."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from vitcapr.commands import main as program
from vitcapr.commands.main import TEMPORARY, remove_abandoned, temporary_files

HOLDING = """
import sys, tempfile
from vitcapr.commands.main import temporary_files
with temporary_files():
    print(tempfile.mkdtemp(), flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_temporary_files_lie_in_one_folder_and_go_with_it(system: Path) -> None:
    with temporary_files():
        inner = Path(tempfile.mkdtemp())
        assert inner.parent.parent == system
        assert os.environ["TMPDIR"] == str(inner.parent)
    assert list(system.iterdir()) == []
    assert tempfile.gettempdir() == str(system)


def test_only_the_folders_of_killed_commands_are_removed(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed, living = (
        subprocess.Popen([sys.executable, "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    )
    folders = [Path(process.stdout.readline().strip()) for process in (killed, living) if process.stdout]
    foreign = system / f"{TEMPORARY}of-a-person"
    foreign.mkdir()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    remove_abandoned()
    assert [folder.exists() for folder in folders] == [True, True]  # Within a moment, a new folder may have no lock.
    monkeypatch.setattr(program, "_MOMENT", 0)
    remove_abandoned()
    assert [folder.exists() for folder in folders] == [False, True]
    assert foreign.exists()
    living.communicate("")
    assert not folders[1].parent.exists()
