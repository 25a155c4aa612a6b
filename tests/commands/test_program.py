"""What a program's failures become."""

import pytest
import torch

from vitcapr.commands.main import run_program


def ask_torch_for_too_much() -> None:
    torch.empty(10**15)


def ask_python_for_too_much() -> None:
    raise MemoryError


def fail() -> None:
    raise RuntimeError("a mistake of ours")


@pytest.mark.parametrize("program", [ask_torch_for_too_much, ask_python_for_too_much])
def test_no_memory_is_one_line(program: object, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        run_program(program)  # type: ignore[arg-type]
    assert stop.value.code == 2
    printed = capsys.readouterr().err
    assert len(printed.splitlines()) == 1
    assert "memory" in printed
    assert "smaller batches need less memory" in printed


def test_a_mistake_of_the_program_keeps_its_traceback() -> None:
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        run_program(fail)


def test_debugging_shows_the_traceback_of_all() -> None:
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        run_program(ask_torch_for_too_much, debug=True)
