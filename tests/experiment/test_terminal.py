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


@pytest.fixture
def handler(monkeypatch, tmp_path):
    """Make a handler that writes to standard output. The results are in ``results/demo``."""
    monkeypatch.setenv(PROGRESS[0], "terminal")

    def make(**settings):
        names = ("printshellcmds", "nocolor", "debug_dag", "verbose", "dryrun")
        plain = ColorizingTextHandler(stream=sys.stdout, formatter=DefaultFormatter())
        chosen = SimpleNamespace(**{**dict.fromkeys(names, False), **settings})
        return StepHandler(plain, chosen, tmp_path / "results/demo", "demo: 40 rendered images")

    return make


def record(message=None, event=None, level=logging.INFO, **told):
    return logging.makeLogRecord({"msg": message, "event": event, "levelno": level, "levelname": "INFO", **told})


def job(number, rule, created, log=None, **wildcards):
    """The record of a job that begins."""
    told = {"rule_msg": None, "local": False, "input": [], "output": [], "benchmark": None, "reason": "r"}
    told |= {"priority": 0, "threads": 1, "is_checkpoint": False, "resources": {"mem_mb": 1}, "rule_name": rule}
    wildcards = {"experiment": "demo", **wildcards}
    return record("", LogEvent.JOB_INFO, jobid=number, wildcards=wildcards, created=created, log=log or [], **told)


def finished(number, created):
    return record("Finished jobid", LogEvent.JOB_FINISHED, job_id=number, created=created)


def summary(folder: Path) -> None:
    folder.mkdir(parents=True)
    row = "demo,scenes,test,attention,beam,cider,0.5,0.4,0.6,10,p"
    (folder / "summary.csv").write_text(f"{','.join(COLUMNS)}\n{row}\n")


def test_a_line_a_step_and_the_scores_at_the_end(handler, tmp_path, capsys):
    log = tmp_path / "extract.log"
    log.write_text("2026-11-23 07:00:00 extract: 500/500 images in 2:05, 4.0/s\n2026-11-23 07:00:01 done\n")
    grown = tmp_path / "grown.log"
    grown.write_text(
        "2026-11-23 07:00:00 200 images copied from other stores (3f), 20 to compute\n"
        "2026-11-23 07:00:03 extract: 220/220 images in 0:03, 7.0/s\n"
    )
    summary(tmp_path / "results/demo")
    (tmp_path / "results/demo/index.html").touch()
    tables = tmp_path / "results/demo/tables"
    tables.mkdir()
    (tables / "spread.csv").write_text(
        f"{','.join(spread.COLUMNS)}\ndemo,test,attention,beam,cider,2,0.3,0.01,0.29,0.31\n"
    )
    (tables / "spread_pairs.csv").write_text(f"{','.join(spread.PAIR_COLUMNS)}\n")
    shown = handler()
    for each in (
        record("Building DAG of jobs..."),
        record("Job stats", LogEvent.RUN_INFO, stats={"extract": 2, "spread": 1, "summary": 1, "all": 1, "total": 5}),
        record("Select jobs to execute..."),
        job(7, "extract", 1000.0, [str(log)], backbone="vit-tiny", task="0"),
        record("Shell command: python -m vitcapr", LogEvent.SHELLCMD, shellcmd="python"),
        finished(7, 1125.4),
        job(9, "extract", 1000.0, [str(grown)], backbone="dino", task="0"),
        finished(9, 1004.0),
        job(8, "summary", 1125.0, [str(tmp_path / "no.log")]),
        finished(8, 1126.0),
        job(9, "spread", 1125.0, [str(tmp_path / "no.log")]),
        finished(9, 1126.0),
        job(0, "all", 1126.0),
        finished(0, 1126.0),
    ):
        shown.emit(each)
    shown.close()
    shown.close()
    lines = capsys.readouterr().out.splitlines()
    assert lines.pop(0) == "demo: 40 rendered images"
    assert lines[:2] == ["4 steps", "[1/4] extract vit-tiny 0 · 500 images · 2:05"]
    assert lines[2] == "[2/4] extract dino 0 · 200 images copied, 20 computed · 0:04"
    assert lines[3:5] == ["[3/4] summary · 0:01", "[4/4] spread · 0:01"]
    assert lines[5].startswith("4 steps in ")
    text = "\n".join(lines)
    assert "demo, test split: mean ± standard deviation (minimum to maximum) over seeds" in text
    assert "CIDEr          30.00 ± " in text
    assert "attention, beam" in text
    assert "50.0" in text
    assert lines[-2:] == [
        f"Scores: {tmp_path / 'results/demo/summary.csv'}",
        f"Page:   {tmp_path / 'results/demo/index.html'}",
    ]


def test_an_error_shows_the_log_and_its_last_lines(handler, tmp_path, capsys):
    log = tmp_path / "decode.log"
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    summary(tmp_path / "results/demo")
    shown = handler()
    shown.emit(record("", LogEvent.RUN_INFO, stats={"total": 2}))
    shown.emit(job(3, "decode", 0.0, [str(log)], captioner="attention"))
    told = {"rule_name": "decode", "jobid": 3, "aux": {"slurm_jobid": "77"}, "log": [str(log)], "shellcmd": "secret"}
    shown.emit(record("Error in rule", LogEvent.JOB_ERROR, logging.ERROR, **told))
    shown.emit(
        record(
            "RuleException:\nCalledProcessError in file x, line 50:\nCommand 'secret'", LogEvent.ERROR, logging.ERROR
        )
    )
    shown.emit(record("Exiting because a job execution failed.", None, logging.ERROR))
    shown.close()
    lines = capsys.readouterr().out.splitlines()
    assert lines[2:5] == ["error in decode attention", "  slurm_jobid: 77", f"  log: {log}"]
    assert lines[5:-1] == [f"    line {number}" for number in range(80, 100)]
    assert lines[-1].startswith("0 of 2 steps in ")
    assert lines[-1].endswith(", 1 failed")


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
def test_the_reason_of_a_failure_is_shown_once(handler, tmp_path, capsys, log, status, shown):
    (tmp_path / "a.log").write_text(log)
    steps = handler()
    command = f"RuleException:\nCalledProcessError in file x, line 5:\nCommand 'a' returned non-zero {status}."
    steps.emit(record(command, LogEvent.ERROR, logging.ERROR))
    told = {"rule_name": "score", "jobid": 1, "aux": {}, "log": [str(tmp_path / "a.log")]}
    steps.emit(record("Error in rule", LogEvent.JOB_ERROR, logging.ERROR, **told))
    steps.emit(record("WorkflowError:\nAt least one job did not complete successfully.", LogEvent.ERROR, logging.ERROR))
    first, _, rest = capsys.readouterr().out.partition(f"  log: {tmp_path}/a.log\n")
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


def test_an_error_before_there_is_a_log(handler, tmp_path, capsys):
    told = {"rule_name": "score", "jobid": 1, "aux": {}, "log": [str(tmp_path / "score.log")]}
    handler().emit(record("Error in rule", LogEvent.JOB_ERROR, logging.ERROR, **told))
    assert capsys.readouterr().out == f"error in score\n  log: {tmp_path}/score.log (not written: the error is above)\n"


def test_warnings_and_unknown_messages_are_shown_in_full(handler, capsys):
    shown = handler()
    message = "a long warning " + "x" * 300
    shown.emit(record(message, None, logging.WARNING))
    shown.emit(record("Unlocked working directory."))
    shown.emit(record("Using shell: /usr/bin/bash"))
    shown.emit(record("Provided cores: 2", LogEvent.RESOURCES_INFO))
    assert capsys.readouterr().out == f"{message}\nUnlocked working directory.\n"


def test_no_scores_where_nothing_ran(handler, tmp_path, capsys):
    summary(tmp_path / "results/demo")
    shown, message = handler(), "Nothing to be done (all requested files are present and up to date)."
    shown.emit(record(message))
    shown.close()
    assert capsys.readouterr().out == f"{message}\n"


@pytest.mark.parametrize("before", ["whole", "damaged"])
def test_the_scores_end_with_what_the_run_changed(handler, tmp_path, capsys, before):
    summary(tmp_path / "results/demo")
    shown, file = handler(), tmp_path / "results/demo/summary.csv"
    whole = file.read_text()
    file.write_text(whole if before == "whole" else "damaged")
    shown.emit(record("", LogEvent.RUN_INFO, stats={"total": 1}))
    shown.emit(job(1, "summary", 0.0))
    file.write_text(whole.replace("0.5", "0.25"))
    shown.emit(finished(1, 1.0))
    shown.close()
    text = capsys.readouterr().out
    assert ("Changed: attention, beam (test): CIDEr 50.00 -> 25.00" in text) is (before == "whole")
    assert f"Scores: {file}" in text


def test_a_run_of_some_steps_shows_no_scores(handler, tmp_path, capsys):
    summary(tmp_path / "results/demo")
    shown = handler()
    for each in (
        record("", LogEvent.RUN_INFO, stats={"total": 1}),
        job(1, "seal", 0.0),
        finished(1, 1.0),
    ):
        shown.emit(each)
    shown.close()
    text = capsys.readouterr().out
    assert "1 step in " in text
    assert "attention, beam" not in text


@pytest.mark.parametrize("option", ["verbose", "printshellcmds", "dryrun", "debug_dag"])
def test_snakemakes_own_output_on_request(handler, capsys, option):
    shown = handler(**{option: True})
    shown.emit(job(1, "seal", 0.0, ["seal.log"]))
    shown.emit(record(None, LogEvent.PROGRESS, done=1, total=2))
    shown.close()
    text = capsys.readouterr().out
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


@pytest.fixture
def handlers(monkeypatch):
    """The handlers of Snakemake's logger, to be replaced: its own, and one of the user's."""
    own, users = ColorizingTextHandler(stream=sys.stdout), logging.NullHandler()
    own.name = "DefaultStreamHandler"
    monkeypatch.setattr(logger, "handlers", [users, own])
    return users, own


def a_workflow(mode=ExecMode.DEFAULT):
    names = ("printshellcmds", "nocolor", "debug_dag", "verbose", "dryrun")
    return SimpleNamespace(exec_mode=mode, output_settings=SimpleNamespace(**dict.fromkeys(names, True)))


def test_snakemakes_handler_is_replaced_once(handlers, tmp_path):
    for name in ("one", "two"):
        show_steps(a_workflow(), tmp_path / name, "")
    users, steps = logger.handlers
    assert users is handlers[0]
    assert isinstance(steps, StepHandler)
    assert steps.results == [tmp_path / "one", tmp_path / "two"]


def test_the_snakemake_of_one_job_keeps_its_output(handlers, tmp_path):
    show_steps(a_workflow(ExecMode.REMOTE), tmp_path, "")
    assert tuple(logger.handlers) == handlers
