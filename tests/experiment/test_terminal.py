"""What a run of Snakemake shows: the records of a run, as Snakemake makes them, and the lines that come of them."""

import atexit
import io
import logging
import os
import signal
import time
from pathlib import Path

import pytest
import snakemake
from rich.console import Console
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_vitcapr import LogHandler
from vitcapr.formats.scores import COLUMNS
from vitcapr.metrics import seed_spread as spread
from vitcapr.progress import PROGRESS, Reporter

KILLED = "interrupted, or killed (often because the memory ran out), or the error is above"
SNAKEMAKE = str(Path(snakemake.__file__).with_name("workflow.py"))


@pytest.fixture
def handler(monkeypatch, tmp_path):
    """Make a handler that writes to standard output. The results are in ``results/demo``."""
    monkeypatch.setenv(PROGRESS[0], "terminal")
    before = signal.getsignal(signal.SIGINT)

    def make(**settings):
        handler = LogHandler(OutputSettings(stdout=True, **settings), None)
        handler.emit(record("demo: 40 rendered images", results=tmp_path / "results/demo"))
        return handler

    yield make
    signal.signal(signal.SIGINT, before)  # Not every test closes its handler.


def record(message=None, event=None, level=logging.INFO, **fields):
    fields = {"pathname": SNAKEMAKE, "funcName": "execute", **fields}
    return logging.makeLogRecord({"msg": message, "event": event, "levelno": level, "levelname": "INFO", **fields})


def job(number, rule, created, log=None, **wildcards):
    """The record of a job that begins."""
    fields = {"rule_msg": None, "local": False, "input": [], "output": [], "benchmark": None, "reason": "r"}
    fields |= {"priority": 0, "threads": 1, "is_checkpoint": False, "resources": {"mem_mb": 1}, "rule_name": rule}
    wildcards = {"experiment": "demo", **wildcards}
    return record("", LogEvent.JOB_INFO, jobid=number, wildcards=wildcards, created=created, log=log or [], **fields)


STARTED = record("Workflow has started!", LogEvent.WORKFLOW_STARTED)


def finished(number, created):
    return record("Finished jobid", LogEvent.JOB_FINISHED, job_id=number, created=created)


def summary(folder: Path) -> Path:
    folder.mkdir(parents=True)
    row = "demo,scenes,test,attention,beam,cider,0.5,0.4,0.6,10,p"
    (folder / "summary.csv").write_text(f"{','.join(COLUMNS)}\n{row}\n")
    return folder / "summary.csv"


@pytest.fixture
def shows(handler, capsys):
    """What is shown of these records, at a command line with these settings."""

    def show(*records, **settings):
        shown = handler(**settings)
        for each in records:
            shown.emit(each)
        shown.close()
        shown.close()
        return capsys.readouterr().out

    return show


def test_a_line_a_step_and_the_scores_at_the_end(shows, tmp_path):
    log = tmp_path / "extract.log"
    log.write_text("2026-11-23 07:00:00 extract: 500/500 images in 2:05, 4.0/s\n2026-11-23 07:00:01 done\n")
    told = tmp_path / "told.log"
    with Reporter(told) as reporter:
        reporter.result("two seeds; left out: 1 (1 x no score)")
    results = summary(tmp_path / "results/demo").parent
    (results / "index.html").touch()
    (results / "tables").mkdir()
    row = "demo,test,attention,beam,cider,2,0.3,0.01,0.29,0.31"
    (results / "tables/spread.csv").write_text(f"{','.join(spread.COLUMNS)}\n{row}\n")
    (results / "tables/spread_pairs.csv").write_text(f"{','.join(spread.PAIR_COLUMNS)}\n")
    text = shows(
        record("Building DAG of jobs..."),
        STARTED,
        record("Job stats", LogEvent.RUN_INFO, stats={"extract": 1, "spread": 1, "all": 1, "total": 3}),
        record("Select jobs to execute..."),
        job(7, "extract", 1000.0, [str(log)], backbone="vit-tiny", task="0"),
        record("Shell command: python -m vitcapr", LogEvent.SHELLCMD, shellcmd="python"),
        finished(7, 1125.4),
        job(9, "spread", 1125.0, [str(told)]),
        finished(9, 1126.0),
        job(0, "all", 1126.0),
        finished(0, 1126.0),
    )
    lines = text.splitlines()
    assert lines[:4] == [
        "demo: 40 rendered images",
        "2 steps",
        "[1/2] extract vit-tiny 0 · 500 images · 2:05",
        "[2/2] spread · two seeds; left out: 1 (1 x no score) · 0:01",
    ]
    assert lines[4].startswith("2 steps in ")
    assert "demo, test split: mean ± standard deviation (minimum to maximum) over seeds" in text
    assert "CIDEr          30.00 ± " in text
    assert "attention, beam" in text
    assert "50.0" in text
    assert lines[-2:] == [f"Scores: {results / 'summary.csv'}", f"Page:   {results / 'index.html'}"]


def failed(*logs, **fields):
    fields = {"jobid": 3, "aux": {}, "log": [*map(str, logs)], "rule_msg": None, **fields}
    return record("Error in rule", LogEvent.JOB_ERROR, logging.ERROR, rule_name="score", **fields)


@pytest.mark.parametrize(
    ("log", "fields", "reason", "shows_log"),
    [
        ("2026-11-23 07:00:00 begun\n2026-11-23 07:00:01 ended: 2 mistakes:\n  one\n", {}, "2 mistakes:\n  one", False),
        ("2026-11-23 07:00:00 ended: by a signal\n2026-11-23 07:00:01 begun\n", {}, KILLED, True),
        (
            "2026-11-23 07:00:00 begun\n",
            {"rule_msg": "its state is 'OUT_OF_MEMORY'"},
            "its state is 'OUT_OF_MEMORY'",
            True,
        ),
        ("", {"rule_msg": f"sbatch failed:\n  {'a word ' * 100}"}, f"sbatch failed:\n{'a word ' * 56}a [...]", False),
        ("", {}, KILLED, False),
    ],
)
def test_the_reason_of_a_failure_is_shown_once(shows, tmp_path, log, fields, reason, shows_log):
    (tmp_path / "a.log").write_text(log)
    text = shows(
        STARTED,
        record("Traceback", LogEvent.ERROR, logging.ERROR, exception="RuleException"),
        failed(tmp_path / "a.log", **fields),
        record("Exiting because a job execution failed.", None, logging.ERROR, funcName="schedule"),
        record("Elapsed time: 1", funcName="log_workflow_runtime"),
        record("At least one job did not complete.", LogEvent.ERROR, logging.ERROR, exception="WorkflowError"),
    )
    first, _, rest = text.partition(f"  log: {tmp_path}/a.log{'' if log else ' (not written)'}\n")
    assert first == f"error in score: {reason}\n"
    assert rest == ("".join(f"    {line}\n" for line in log.splitlines()) if shows_log else "")


def test_a_job_that_starts_again_and_an_error_of_the_workflow(shows, tmp_path):
    again = job(3, "score", 1000.0, [str(tmp_path / "a.log")])
    error = record("MissingRuleException", LogEvent.ERROR, logging.ERROR, exception="MissingRuleException")
    assert shows(again, failed(), again, error).splitlines()[-1] == "MissingRuleException"
    locked = record("Directory cannot\nbe locked", LogEvent.ERROR, logging.ERROR, exception="LockException")
    assert shows(locked).splitlines()[-1].startswith("error: another run works in this folder; wait")
    old = tmp_path / "old.log"
    old.write_text("2026-11-23 07:00:00 ended: training saved at epoch 32\n")
    os.utime(old, (999.0, 999.0))
    text = shows(again, failed(old, rule_msg="its state is 'OUT_OF_MEMORY'"))
    assert "error in score: its state is 'OUT_OF_MEMORY'" in text
    assert "epoch 32" not in text
    assert "Nothing to be done" not in shows(STARTED, error)


@pytest.mark.parametrize(("steps", "after"), [(40, " after 1 of 40 steps in 0:00"), (0, "")])
def test_an_interrupt_is_one_line_and_ends_the_process_by_the_signal(handler, monkeypatch, capsys, steps, after):
    endings = []
    monkeypatch.setattr(atexit, "register", endings.append)
    monkeypatch.setattr(os, "kill", lambda *sent: endings.append(sent))
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run = handler()
        for each in (STARTED, *([record("", LogEvent.RUN_INFO, stats={"total": steps})] if steps else [])):
            run.emit(each)
        run.emit(finished(1, 0.0))
        with pytest.raises(SystemExit):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)  # Only for the stages.
        run.emit(failed(rule_msg="exit code 130"))
        run.emit(record("At least one job did not complete.", LogEvent.ERROR, logging.ERROR, exception="WorkflowError"))
        run.close()
        endings[0]()
        assert endings[1] == (os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, previous)
    assert capsys.readouterr().out.splitlines()[-1] == f"stopped{after}; the same command goes on"
    assert len(endings) == 2


def test_what_runs_fits_80_columns(handler, tmp_path):
    log = tmp_path / "train.log"
    steps = handler()
    steps.emit(record("", LogEvent.RUN_INFO, stats={"total": 40}))
    steps.emit(job(1, "train_captioner", 0.0, [str(log)], captioner="attention"))
    steps.emit(job(2, "decode", time.time() + 60, [str(log)], decoding="beam"))
    steps.emit(finished(3, 0.0))
    log.write_text(f"2026-11-23 07:00:00 training: 120/4000 steps, 53.1/s, 1:12 left, {'x' * 100} \x1b[31m\n")
    stream = io.StringIO()
    Console(file=stream, width=80).print(steps.running())
    bar, training, decoding = stream.getvalue().splitlines()
    assert bar.rstrip().endswith(" 1/40 steps in 0:00")
    assert training.startswith("  train_captioner attention · training: 120/4000 steps, 53.1/s, 1:12 left, xx")
    assert (len(training), training[-1]) == (80, "…")
    assert decoding.strip() == "decode beam"


def test_warnings_and_unknown_messages_are_shown_in_full(shows):
    message = "a long warning " + "x" * 300
    text = shows(
        record(message, None, logging.WARNING),
        record("Job 3 has been submitted with SLURM jobid 7", pathname="/site/snakemake_executor_plugin_slurm/a.py"),
        record("Provided cores: 2", LogEvent.RESOURCES_INFO),
        record("Unlocked working directory."),
    )
    assert text == f"{message}\nJob 3 has been submitted with SLURM jobid 7\nUnlocked working directory.\n"


def test_no_scores_where_none_were_made(shows, tmp_path):
    summary(tmp_path / "results/demo")
    nothing = "Nothing to be done (all requested files are present and up to date).\n"
    assert shows(record("Building DAG of jobs..."), STARTED, record("Using shell: /usr/bin/bash")) == nothing
    text = shows(record("", LogEvent.RUN_INFO, stats={"total": 1}), job(1, "seal", 0.0), finished(1, 1.0))
    assert "1 step in " in text
    assert "attention, beam" not in text


def test_a_summary_without_scores_is_not_named(shows, tmp_path):
    file = summary(tmp_path / "results/demo")
    file.write_text(f"{','.join(COLUMNS)}\n")
    (file.parent / "index.html").touch()
    started = (STARTED, record("", LogEvent.RUN_INFO, stats={"total": 1}))
    lines = shows(*started, job(1, "summary", 0.0), finished(1, 1.0)).splitlines()
    assert lines[-1] == f"Page:   {file.parent / 'index.html'}"
    assert not [line for line in lines if line.startswith("Scores")]


@pytest.mark.parametrize("before", ["whole", "damaged"])
def test_the_scores_end_with_what_the_run_changed(handler, tmp_path, capsys, before):
    file = summary(tmp_path / "results/demo")
    shown, whole = handler(), file.read_text()
    file.write_text(whole if before == "whole" else "damaged")
    shown.emit(record("", LogEvent.RUN_INFO, stats={"total": 1}))
    shown.emit(job(1, "summary", 0.0))
    file.write_text(whole.replace("0.5", "0.25"))
    shown.emit(finished(1, 1.0))
    shown.close()
    text = capsys.readouterr().out
    assert ("Changed: attention, beam (test): CIDEr 50.00 -> 25.00" in text) is (before == "whole")
    assert f"Scores: {file}" in text


def test_the_messages_of_a_stage_go_to_its_log_only(handler, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(PROGRESS[0])
    handler(verbose=True)
    assert PROGRESS[0] not in os.environ
    handler()
    with Reporter(tmp_path / "stage.log") as report:
        report.line("to the log")
    with Reporter() as report:
        report.line("to the terminal")
    assert "to the log" in (tmp_path / "stage.log").read_text()
    assert capsys.readouterr().err == "to the terminal\n"


def test_snakemakes_own_output_on_request(shows):
    assert "rule seal:" in shows(job(1, "seal", 0.0, ["seal.log"]), verbose=True)
