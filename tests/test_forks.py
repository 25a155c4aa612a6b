"""A fork behaves as a new Python does: its folder, arguments, environment, streams, exit code, and what it starts."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forks import Forks


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    with Forks("json") as forks:
        yield forks


def test_it_has_its_own_folder_arguments_environment_streams_and_exit_code(forks: Forks, tmp_path: Path) -> None:
    code = (
        "import json, os, sys; print(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), sys.stdin.read()])); "
        "print('é', file=sys.stderr); sys.exit(3)"
    )
    done = forks.run("-c", code, "one", "two words", folder=tmp_path, environment={"A": "b", "PYTHONUTF8": "1"})
    assert json.loads(done.stdout) == [["one", "two words"], str(tmp_path), {"A": "b", "PYTHONUTF8": "1"}, ""]
    assert done.stderr == "é\n"
    assert done.returncode == 3


def test_a_module_of_the_folder_runs_as_the_program(forks: Forks, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import sys\nprint(__name__, sys.argv[1:])\n")
    assert forks.run("-m", "mine", "x", folder=tmp_path).stdout == "__main__ ['x']\n"


def test_a_signal_and_an_exception_are_failures(forks: Forks, tmp_path: Path) -> None:
    assert forks.run("-c", "import os; os.kill(os.getpid(), 9)", folder=tmp_path).returncode == 128 + 9
    failed = forks.run("-c", "1 / 0", folder=tmp_path)
    assert failed.returncode == 1
    assert "ZeroDivisionError" in failed.stderr


def test_the_python_that_it_starts_is_a_fork_too(forks: Forks, tmp_path: Path) -> None:
    inner = "import sys; print('json' in sys.modules, sys.argv[1:], flush=True); sys.exit(5)"
    outer = f"import subprocess, sys; print(subprocess.run([sys.executable, '-c', {inner!r}, 'x']).returncode)"
    assert forks.run("-c", outer, folder=tmp_path).stdout == "True ['x']\n5\n"
