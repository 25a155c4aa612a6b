"""The program: every command can be found and explains itself, and nothing heavy is loaded to say so."""

import subprocess
import sys
from pathlib import Path

import pytest

import vitcapr.cli
from vitcapr.cli.main import COMMANDS, main

KNOWN = sorted(name for group in COMMANDS.values() for name in group)


def vitcapr_program(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "vitcapr.cli.main", *arguments], capture_output=True, text=True, check=False
    )


def test_the_table_has_every_command() -> None:
    folder = Path(vitcapr.cli.__file__).parent
    programs = {path.stem for path in folder.glob("*.py") if "launch(" in path.read_text(encoding="utf-8")}
    assert set(KNOWN) == programs


@pytest.mark.filterwarnings("ignore:.*found in sys.modules after import:RuntimeWarning")
@pytest.mark.parametrize("command", KNOWN)
def test_every_command_explains_itself(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: a program for each would spend minutes on imports."""
    monkeypatch.setattr(sys, "argv", ["vitcapr", command, "--help"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    said = capsys.readouterr().out
    assert "Usage: " in said
    assert f"vitcapr {command} " in said


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_lists_every_command(arguments: tuple[str, ...]) -> None:
    done = vitcapr_program(*arguments)
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in KNOWN)


def test_help_loads_no_heavy_library() -> None:
    program = (
        "import sys; sys.argv = ['vitcapr', '--help']; from vitcapr.cli.main import main; main(); "
        "print([name for name in ('torch', 'pandas', 'pydantic', 'typer') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version() -> None:
    assert vitcapr_program("--version").stdout == f"vitcapr {vitcapr.__version__}\n"


def test_a_misspelt_command_gets_a_suggestion() -> None:
    done = vitcapr_program("exract")
    assert done.returncode == 2
    assert done.stderr == "error: no command 'exract'; did you mean 'extract'?\n"


def test_dashes_are_as_good_as_underscores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["vitcapr", "train-captioner", "--help"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0


def test_a_users_mistake_is_one_line(tmp_path: Path) -> None:
    done = vitcapr_program("table", str(tmp_path / "none.csv"))
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
