"""Progress in a log file and on a stream that is no terminal."""

from io import StringIO
from pathlib import Path

import pytest

from vitcapr.errors import EXIT_BAD_INPUT, UserError
from vitcapr.progress import PROGRESS, Reporter, format_seconds, print_lines


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (75.9, "1:15"), (3700, "1:01:40"), (-3, "0:00")])
def test_durations(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_a_terminal_wraps_lines_under_their_last_column(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    stream = StringIO()
    lines = ["  name    one two three four", "a sentence of more than a line", "/a-path/that-has-more-characters"]
    print_lines(*lines, stream=stream)
    assert stream.getvalue().splitlines() == lines
    terminal, pipe = StringIO(), StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    print_lines(*lines, stream=terminal, width=90)
    print_lines(*lines, stream=pipe, width=24)
    assert terminal.getvalue() == pipe.getvalue()
    assert pipe.getvalue().splitlines() == [
        *("  name    one two three", "          four"),
        *("a sentence of more than", "  a line", "/a-path/that-has-more-characters"),
    ]


def test_lines_reach_the_log_and_the_stream(tmp_path: Path) -> None:
    stream = StringIO()
    with (
        Reporter(tmp_path / "logs" / "stage.log", interval=0, stream=stream) as reporter,
        reporter.track("reading", total=4, unit="images", done=1) as tracker,
    ):
        tracker.advance(2, note="loss 0.5")
        tracker.advance(1)
        reporter.line("a [bracketed] message")
    log = (tmp_path / "logs" / "stage.log").read_text().splitlines()
    assert "reading: 3/4 images" in log[0]
    assert "left, loss 0.5" in log[0]
    assert log[2].endswith("a [bracketed] message")
    assert "reading: 4/4 images in 0:00" in log[3]
    assert stream.getvalue().count("reading:") == 3


def test_the_log_says_that_ctrl_c_ended_a_stage(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Reporter(tmp_path / "stage.log", stream=StringIO()):
        raise KeyboardInterrupt
    assert (tmp_path / "stage.log").read_text().endswith(" ended: KeyboardInterrupt\n")


def test_resumed_work_does_not_count_for_the_rate() -> None:
    reporter = Reporter(stream=StringIO())
    with reporter.track("reading", total=1_000_000, unit="images", done=999_000) as tracker:
        tracker.advance(1)
        assert tracker.rate < 900_000


def test_a_log_is_appended_to(tmp_path: Path) -> None:
    for message in ("one", "two"):
        with Reporter(tmp_path / "log", stream=StringIO()) as reporter:
            reporter.line(message)
    assert len((tmp_path / "log").read_text().splitlines()) == 2


def test_the_log_says_why_a_stage_ended_and_nothing_else_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*PROGRESS)
    with pytest.raises(SystemExit) as stop, Reporter(tmp_path / "log"):
        raise UserError("no such file", where="here")
    assert stop.value.code == EXIT_BAD_INPUT
    assert (tmp_path / "log").read_text().endswith("ended: no such file (here)\n")
    with pytest.raises(UserError), Reporter(stream=StringIO()):
        raise UserError("no such file")
