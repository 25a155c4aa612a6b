"""The program: help, mistakes, what it loads, its memory, and its temporary files."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import torch

import vitcapr
from vitcapr.commands import extract
from vitcapr.commands.main import (
    command_modules,
    main,
    run_program,
    temporary_files,
)
from vitcapr.errors import Preempted, UserError
from vitcapr.files import read_json, write_json
from vitcapr.pipeline.stage import stage_names

HEAVY = ("torch", "transformers", "pandas", "matplotlib", "numpy", "zarr", "pyarrow")


def vitcapr_program(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "vitcapr", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "words", [*([name] for name in command_modules()), *(["stage", name] for name in stage_names())], ids=" ".join
)
def test_every_command_and_every_stage_explains_itself(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process: a program for each would spend minutes on imports."""
    monkeypatch.setattr(sys, "argv", ["vitcapr", *words, "--help"])
    with suppress(SystemExit):
        main()
    assert f"vitcapr {' '.join(words)} " in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [(), ("--help",), ("-h",)])
def test_help_lists_every_command(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["vitcapr", *arguments])
    with suppress(SystemExit):
        main()
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed for name in command_modules())


def test_declarations_and_hashes_load_no_heavy_library_and_help_and_mistakes_no_torch() -> None:
    """The declarations of all stages are loaded while Snakemake parses the Snakefile."""
    commands = [
        (["caption", "--help"], ""),
        (["caption", "absent.png"], "1 of 1 have no caption"),
        (["caption", __file__, "--captioner", "absent"], "no trained captioner here"),
        (["search", "--help"], ""),
        (["search", "dog", "--retriever", "absent"], "no trained retriever here"),
        (["search", "--image", "absent.png"], "no such image"),
        (["evaluate", "--help"], ""),
        (["evaluate", "absent.json", "--references", "absent.json"], "no such file"),
        (["features", "info", "absent"], "no such file"),
        (["table", "absent.csv"], "no such file"),
    ]
    program = f"""
import sys
from contextlib import suppress
from vitcapr.commands.main import main

def check(*names):
    loaded = [name for name in names if name in sys.modules]
    assert not loaded, (sys.argv, loaded)

sys.argv = ["vitcapr", "--help"]
main()
check(*{HEAVY}, "pydantic")
from vitcapr.pipeline.stage import each_stage
list(each_stage())
check(*{HEAVY})
import vitcapr.experiment.experiment
from vitcapr.pipeline.code import job_code
job_code("vitcapr.stages.train_captioner", {{}})
check(*{HEAVY})
for words in {[words for words, _ in commands]}:
    sys.argv = ["vitcapr", *words]
    with suppress(SystemExit):
        main()
    check("torch", "transformers", "pandas", "matplotlib", "dask")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    mistakes = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    for line, message in zip(mistakes, [message for _, message in commands if message], strict=True):
        assert message in line


def test_version() -> None:
    assert vitcapr_program("--version").stdout == f"vitcapr {vitcapr.__version__}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["captoin"], "error: no command 'captoin'; did you mean 'caption'?\n"),
        (["stage", "decoed"], "error: unknown stage 'decoed'; did you mean 'decode'?\n"),
        (["xyzzy"], "error: no command 'xyzzy'; vitcapr --help lists the commands\n"),
        (["table", "no.csv"], "error: no such file (no.csv); run snakemake, or name a summary.csv\n"),
        (["stage", "vocabulary", "--job", '{"manifest": "no.json", "vocabulary": "v", "tokens": "t"}'], "error: "),
        (["stage", "vocabulary", "--job", '{"manifest": ".", "vocabulary": "v", "tokens": "t"}'], "error: "),
    ],
)
def test_a_mistake_is_one_line_perhaps_with_a_suggestion(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["vitcapr", *words])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    printed = capsys.readouterr().err
    assert printed.startswith(message)
    assert printed.count("\n") == 1


def ask_torch_for_too_much() -> None:
    torch.empty(10**15)


def ask_python_for_too_much() -> None:
    raise MemoryError


@pytest.mark.parametrize("program", [ask_torch_for_too_much, ask_python_for_too_much])
def test_no_memory_is_one_line(program: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run_program(program)
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    assert len(printed.splitlines()) == 1
    assert "memory" in printed
    assert "smaller batches need less memory" in printed


def test_a_stopped_training_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    def stop() -> None:
        raise Preempted("training saved")

    with pytest.raises(SystemExit) as end:
        run_program(stop)
    assert (end.value.code, capsys.readouterr().err) == (75, "stopped: training saved\n")


def test_a_mistake_of_the_program_and_debugging_show_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["vitcapr", "--debug", "table", "nothing/here.csv"])
    with pytest.raises(UserError):
        main()

    def fail() -> None:
        raise RuntimeError("a mistake of ours")

    with pytest.raises(RuntimeError, match="a mistake of ours"):
        run_program(fail)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        run_program(ask_torch_for_too_much, debug=True)


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


@pytest.mark.parametrize("settings", ["5", "[1]", '{"batch": 3}', '{"data": "a"}'])
def test_settings_of_an_extraction_are_keys_of_a_backbone(settings: str) -> None:
    with pytest.raises(UserError, match="--settings"):
        extract.main(Path("data"), "backbone", Path("out"), settings=settings)


def test_a_file_name_need_not_be_utf_8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:strict")
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    done = vitcapr_program("init", str(folder))
    assert (done.returncode, done.stdout.partition("\n")[0]) == (0, rf"{tmp_path}/caf\udce9: a new study")
    write_json(folder / "a.json", {"path": str(folder)})
    assert read_json(folder / "a.json") == {"path": str(folder)}
