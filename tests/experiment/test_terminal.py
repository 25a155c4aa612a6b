"""What a run of Snakemake shows: the records of a run, as Snakemake makes them, and the lines that come of them."""

import io
import logging
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from snakemake.logging import ColorizingTextHandler, DefaultFormatter, logger
from snakemake.settings.types import ExecMode
from snakemake_interface_logger_plugins.common import LogEvent

from vitcapr.formats.scores import COLUMNS
from vitcapr.metrics import spread
from vitcapr.progress import PROGRESS, Reporter
from vitcapr.terminal import StepHandler, show_steps

NAMES = ("printshellcmds", "nocolor", "debug_dag", "verbose", "dryrun")
"""Of Snakemake's settings of its output."""


@pytest.fixture
def handler(monkeypatch, tmp_path):
    """Make a handler that writes to standard output. The results are in ``results/demo``."""
    monkeypatch.setenv(PROGRESS[0], "terminal")

    def make(**settings):
        plain = ColorizingTextHandler(stream=sys.stdout, formatter=DefaultFormatter())
        chosen = SimpleNamespace(**{**dict.fromkeys(NAMES, False), **settings})
        return StepHandler(plain, chosen, tmp_path / "results/demo", "demo: 40 rendered images")

    return make


def record(message=None, event=None, level=logging.INFO, **fields):
    return logging.makeLogRecord({"msg": message, "event": event, "levelno": level, "levelname": "INFO", **fields})


def job(number, rule, created, log=None, **wildcards):
    """The record of a job that begins."""
    fields = {"rule_msg": None, "local": False, "input": [], "output": [], "benchmark": None, "reason": "r"}
    fields |= {"priority": 0, "threads": 1, "is_checkpoint": False, "resources": {"mem_mb": 1}, "rule_name": rule}
    wildcards = {"experiment": "demo", **wildcards}
    return record("", LogEvent.JOB_INFO, jobid=number, wildcards=wildcards, created=created, log=log or [], **fields)


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
    log, grown = tmp_path / "extract.log", tmp_path / "grown.log"
    log.write_text("2026-11-23 07:00:00 extract: 500/500 images in 2:05, 4.0/s\n2026-11-23 07:00:01 done\n")
    grown.write_text(
        "2026-11-23 07:00:00 200 images copied from other stores (3f), 20 to compute\n"
        "2026-11-23 07:00:03 extract: 220/220 images in 0:03, 7.0/s\n"
    )
    results = summary(tmp_path / "results/demo").parent
    (results / "index.html").touch()
    (results / "tables").mkdir()
    row = "demo,test,attention,beam,cider,2,0.3,0.01,0.29,0.31"
    (results / "tables/spread.csv").write_text(f"{','.join(spread.COLUMNS)}\n{row}\n")
    (results / "tables/spread_pairs.csv").write_text(f"{','.join(spread.PAIR_COLUMNS)}\n")
    text = shows(
        record("Building DAG of jobs..."),
        record("Job stats", LogEvent.RUN_INFO, stats={"extract": 2, "spread": 1, "all": 1, "total": 4}),
        record("Select jobs to execute..."),
        job(7, "extract", 1000.0, [str(log)], backbone="vit-tiny", task="0"),
        record("Shell command: python -m vitcapr", LogEvent.SHELLCMD, shellcmd="python"),
        finished(7, 1125.4),
        job(9, "extract", 1000.0, [str(grown)], backbone="dino", task="0"),
        finished(9, 1004.0),
        job(9, "spread", 1125.0, [str(tmp_path / "no.log")]),
        finished(9, 1126.0),
        job(0, "all", 1126.0),
        finished(0, 1126.0),
    )
    lines = text.splitlines()
    assert lines[:5] == [
        "demo: 40 rendered images",
        "3 steps",
        "[1/3] extract vit-tiny 0 · 500 images · 2:05",
        "[2/3] extract dino 0 · 200 images copied, 20 computed · 0:04",
        "[3/3] spread · 0:01",
    ]
    assert lines[5].startswith("3 steps in ")
    assert "demo, test split: mean ± standard deviation (minimum to maximum) over seeds" in text
    assert "CIDEr          30.00 ± " in text
    assert "attention, beam" in text
    assert "50.0" in text
    assert lines[-2:] == [f"Scores: {results / 'summary.csv'}", f"Page:   {results / 'index.html'}"]


def failed(log, **fields):
    fields = {"jobid": 3, "aux": {}, "log": [str(log)], **fields}
    return record("Error in rule", LogEvent.JOB_ERROR, logging.ERROR, **fields)


@pytest.mark.parametrize(
    ("log", "status", "shown"),
    [
        (
            "2026-11-23 07:00:00 begun\n2026-11-23 07:00:01 ended: 2 mistakes:\n  one\n  two\n",
            "exit status 2",
            ": 2 mistakes:\n  one\n  two",
        ),
        ("2026-11-23 07:00:00 ended: an earlier run\n2026-11-23 07:00:01 begun\n", "exit status 1", ""),
        (
            "2026-11-23 07:00:00 ended: an earlier run\n",
            "exit status 137",
            ": killed by signal 9; often the memory ran out",
        ),
        ("", "exit status 139", ": killed by signal 11"),
    ],
)
def test_the_reason_of_a_failure_is_shown_once(shows, tmp_path, log, status, shown):
    (tmp_path / "a.log").write_text(log)
    command = f"RuleException:\nCalledProcessError in file x, line 5:\nCommand 'a' returned non-zero {status}."
    text = shows(
        record(command, LogEvent.ERROR, logging.ERROR),
        failed(tmp_path / "a.log", rule_name="score"),
        record("WorkflowError:\nAt least one job did not complete successfully.", LogEvent.ERROR, logging.ERROR),
    )
    first, _, rest = text.partition(f"  log: {tmp_path}/a.log\n")
    assert first == f"error in score{shown}\n"
    assert rest == ("" if "mistakes" in shown else "".join(f"    {line}\n" for line in log.splitlines()))


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


def test_an_error_before_there_is_a_log(shows, tmp_path):
    text = shows(failed(tmp_path / "score.log", rule_name="score"))
    assert text == f"error in score\n  log: {tmp_path}/score.log (not written: the error is above)\n"


def test_warnings_and_unknown_messages_are_shown_in_full(shows):
    message = "a long warning " + "x" * 300
    text = shows(
        record(message, None, logging.WARNING),
        record("Unlocked working directory."),
        record("Using shell: /usr/bin/bash"),
        record("Provided cores: 2", LogEvent.RESOURCES_INFO),
    )
    assert text == f"{message}\nUnlocked working directory.\n"


def test_no_scores_where_none_were_made(shows, tmp_path):
    summary(tmp_path / "results/demo")
    message = "Nothing to be done (all requested files are present and up to date)."
    assert shows(record(message)) == f"{message}\n"
    text = shows(record("", LogEvent.RUN_INFO, stats={"total": 1}), job(1, "seal", 0.0), finished(1, 1.0))
    assert "1 step in " in text
    assert "attention, beam" not in text


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


@pytest.mark.parametrize("option", ["verbose", "printshellcmds", "dryrun", "debug_dag"])
def test_snakemakes_own_output_on_request(shows, option):
    text = shows(job(1, "seal", 0.0, ["seal.log"]), record(None, LogEvent.PROGRESS, done=1, total=2), **{option: True})
    assert "rule seal:" in text
    assert "log: seal.log" in text
    assert "1 of 2 steps (50%) done" in text


def test_the_messages_of_a_stage_go_to_its_log_only(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(*PROGRESS)
    with Reporter(tmp_path / "stage.log") as report:
        report.line("to the log")
    with Reporter() as report:
        report.line("to the terminal")
    assert "to the log" in (tmp_path / "stage.log").read_text()
    assert capsys.readouterr().err == "to the terminal\n"


def test_the_handler_asks_the_stages_for_that(handler, monkeypatch):
    monkeypatch.delenv(PROGRESS[0])
    handler(verbose=True)
    assert PROGRESS[0] not in os.environ
    handler()
    assert os.environ[PROGRESS[0]] == PROGRESS[1]


def test_snakemakes_handler_is_replaced_once_and_that_of_the_user_stays(monkeypatch, tmp_path):
    """The Snakemake of one job keeps its output."""
    own, users = ColorizingTextHandler(stream=sys.stdout), logging.NullHandler()
    own.name = "DefaultStreamHandler"
    monkeypatch.setattr(logger, "handlers", [users, own])
    workflow = SimpleNamespace(exec_mode=ExecMode.REMOTE, output_settings=SimpleNamespace(**dict.fromkeys(NAMES, True)))
    show_steps(workflow, tmp_path, "")
    assert logger.handlers == [users, own]
    workflow.exec_mode = ExecMode.DEFAULT
    for name in ("one", "two"):
        show_steps(workflow, tmp_path / name, "")
    assert logger.handlers[0] is users
    (steps,) = logger.handlers[1:]
    assert steps.results == [tmp_path / "one", tmp_path / "two"]
