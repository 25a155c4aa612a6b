"""Every job leaves a record; a long one is not done twice; what `why` and `gc` make of it."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, cast

import psutil
import pytest

from tests.checkpoints import snapshot
from vitcapr.commands import gc, why
from vitcapr.commands.status import RESTORED, Shortcuts
from vitcapr.config.base import StageSettings
from vitcapr.errors import UserError
from vitcapr.experiment.lineage import Records
from vitcapr.experiment.rule import RuleStage
from vitcapr.files import canonical_json
from vitcapr.formats.scores import COLUMNS
from vitcapr.pipeline import owner
from vitcapr.pipeline.fingerprint import fingerprint
from vitcapr.pipeline.run import Job, run_stage
from vitcapr.pipeline.run import threads as own_threads
from vitcapr.pipeline.run_records import read_run
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter

MODULE = "vitcapr.stages.vocabulary"
"""Whose code the toys are said to be."""


Source = Annotated[Path, "A text"]
Model = Annotated[Path, "A folder of weights", ("weights",)]


class Rate(StageSettings):
    rate: float

    def user_files(self) -> Iterator[tuple[str, Path]]:
        yield from (("prior", path) for path in [Path("prior.txt")] if path.exists())


class Toys:
    """Two stages: one squares a number, slowly; one copies what it reads."""

    def __init__(self) -> None:
        self.trainings = 0
        self.meanwhile: Callable[[], object] = lambda: None

        @stage(cached=True)
        def train(source: In[Source], settings: Rate, report: Reporter, model: Out[Model]) -> None:
            """Train."""
            report.line("training")
            self.trainings += 1
            self.meanwhile()
            model.mkdir(parents=True, exist_ok=True)
            (model / "weights").write_text(f"{settings.rate**2} {source.read_text()}")
            (model / "checkpoint").mkdir(exist_ok=True)
            (model / "checkpoint/state").write_text("state")

        @stage()
        def copy(read: dict[str, In[Source]], target: Out[Source]) -> None:
            """Copy."""
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("".join(path.read_text() for path in read.values()))

        self.train, self.copy = train, copy
        for each in (train, copy):
            each.function.__module__ = MODULE

    def run(self, rate: float, experiment: str = "a", results: Path = Path("results")) -> Path:
        """What a run of the DAG does: outputs are deleted, then the jobs run. Returns the model's folder."""
        root = results / experiment
        for stale in (root / "model/weights", root / "out/copy"):
            stale.unlink(missing_ok=True)
        self.run_training(rate, root)
        weights = {"model": root / "model/weights"}
        run_stage(self.copy, log=root / "logs/copy.log", read=weights, target=root / "out/copy")
        return root / "model"

    def run_training(self, rate: float, root: Path = Path("results/a")) -> None:
        log, settings = root / "logs/train/model.log", {"rate": rate}
        run_stage(self.train, log=log, source=Path("data.txt"), settings=settings, model=root / "model")

    def planned(self, rate: float, source: str = "data.txt", folder: str = "results/a/model") -> Any:
        """A training as Snakemake plans it."""
        job, results = {"source": source, "settings": {"rate": rate}, "model": folder}, Path("results")
        made_of = fingerprint(self.train, Rate(rate=rate), job, results)
        declared = RuleStage(self.train, cast(Any, None), results)
        command = shlex.join(self.train.command(job))
        return SimpleNamespace(
            rule=SimpleNamespace(params={"command": declared.command}),
            params=SimpleNamespace(command=command, fingerprint=canonical_json({**made_of, "names": {}})),
            input=[source],
            output=[f"{folder}/weights"],
            threads=own_threads(),
        )


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toys:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VITCAPR_RESULT_CACHE", raising=False)
    (tmp_path / "data.txt").write_text("data")
    return Toys()


Printed = Callable[..., str]
Kept = Callable[..., None]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """What a command prints."""

    def call(command: Callable[..., None], *arguments: Any, **options: Any) -> str:
        capsys.readouterr()
        command(*arguments, **options)
        return capsys.readouterr().out

    return call


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    """Configures an experiment whose rules make these files."""

    def configure(experiment: str, *files: str) -> None:
        Path("config.yaml").write_text(f"experiment: {experiment}\n")
        monkeypatch.setattr(gc, "output_files", lambda _: set(files))

    return configure


def test_a_record_says_what_was_read_and_written(toys: Toys) -> None:
    toys.run(0.5)
    run = read_run(Path("results/a/runs/train/model.json"))
    assert run.name == "train/model"
    assert list(run.inputs) == ["data.txt"]
    assert list(run.outputs) == ["results/a/model/weights"]
    assert run.code["vitcapr/stages/vocabulary.py"]
    assert {"user", "host", "seconds", "python"} <= run.made.keys()
    assert run.made["peak_memory_mb"] > psutil.Process().memory_info().rss / 2**21
    assert list(read_run(Path("results/a/runs/copy.json")).inputs) == ["results/a/model/weights"]


def test_a_planned_job_is_restored_if_the_cache_has_it_and_what_it_reads_is_there_or_restored(toys: Toys) -> None:
    weights = toys.run(0.5) / "weights"
    job = {"source": str(weights), "settings": {"rate": 1}, "model": "results/b/model"}
    run_stage(toys.train, log=Path("results/b/logs/model.log"), **job)
    weights.unlink()
    after = toys.planned(1, str(weights), "results/b/model")
    for rate, shortcut in ((0.5, RESTORED), (0.25, "")):
        shortcuts = Shortcuts(Path("results"))
        assert [shortcuts.of(toys.planned(rate)), shortcuts.of(after)] == [shortcut, shortcut]


def test_a_result_is_computed_once_for_its_settings_and_inputs(toys: Toys) -> None:
    first = (toys.run(0.5) / "weights").read_text()
    assert (toys.run(0.25) / "weights").read_text() != first
    assert toys.trainings == 2
    assert (toys.run(0.5) / "weights").read_text() == first
    toys.run(0.5, "b")
    assert toys.trainings == 2
    assert read_run(Path("results/a/runs/train/model.json")).result_cache["restored"]
    Path("data.txt").write_text("other")
    toys.run(0.5)
    assert toys.trainings == 3


def test_a_file_that_the_settings_name_counts_by_its_content(toys: Toys) -> None:
    """Such as the weights of a language model, which no rule declares."""
    for content, trainings in (("one", 1), ("two", 2), ("one", 2)):
        Path("prior.txt").write_text(content)
        toys.run(0.5)
        assert toys.trainings == trainings
    assert read_run(Path("results/a/runs/train/model.json")).files.keys() == {"prior"}


def test_the_names_and_the_order_of_inputs_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two folders with files of the same names must not be exchanged."""
    monkeypatch.chdir(tmp_path)
    paths = [Path(name, "store.json") for name in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(path.parent.name)

    @stage(cached=True)
    def join(read: dict[str, In[Source]], listed: list[In[Source]], target: Out[Source]) -> None:
        """Join."""

    join.function.__module__ = MODULE

    def key(read: dict[str, Path], listed: list[Path]) -> str:
        job = Job(join, {"read": read, "listed": listed, "target": Path("c")})
        return job.result_key({}, job.inputs(), 1)

    a, b = paths
    calls = [({"x": a, "y": b}, [a, b]), ({"x": b, "y": a}, [a, b]), ({"x": a, "y": b}, [b, a]), ({"x": a}, [a, b])]
    assert len({key(read, listed) for read, listed in calls}) == len(calls)
    assert key(*calls[0]) == key(*calls[0])


def test_other_threads_train_again_and_diff_says_so(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    for threads, experiment, trainings in (("1", "a", 1), ("2", "b", 2), ("1", "c", 2)):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        toys.run(0.5, experiment)
        assert toys.trainings == trainings
    one, two = (Records(Path("results") / name) for name in ("a", "b"))
    assert "  threads 1 -> 2" in why.compare_experiments(one, two)


@pytest.mark.parametrize("changed", ["data.txt", "prior.txt"])
def test_a_file_that_changes_while_a_stage_reads_it_is_no_result(toys: Toys, changed: str) -> None:
    """An input, and a file that the settings name."""
    Path("prior.txt").write_text("one")
    toys.meanwhile = lambda: Path(changed).write_text("other")
    with pytest.raises(UserError, match=rf"the file changed while vocabulary ran \({changed}\)"):
        toys.run(0.5)
    assert not Path("results/result_cache").exists()
    assert not Path("results/a/runs/train/model.json").exists()
    assert Path("results/a/model/checkpoint").exists(), "the next attempt continues from it"


def test_a_job_has_one_owner(toys: Toys, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A live owner is waited for and its result kept; a dead one, and an earlier start of a Slurm job, is succeeded."""
    monkeypatch.setenv("VITCAPR_RESULT_CACHE", "off")
    monkeypatch.setattr(owner, "_PATIENCE", 0.3)
    lock, go = Path("results/a/runs/train/model.lock"), Path("go")

    def begin_elsewhere() -> int:
        if (child := os.fork()) == 0:
            toys.meanwhile = lambda: wait_for(go)
            toys.run(0.5)
            os._exit(0)
        wait_for(lock.with_suffix(".owner"))
        return child

    child = begin_elsewhere()
    threading.Timer(1.0, go.touch).start()
    toys.run_training(0.5)
    assert os.waitpid(child, 0)[1] == 0
    assert toys.trainings == 0
    printed = capsys.readouterr().err
    assert re.search(rf"process {child} on \S+ works on this job: waiting for its end \({lock}\)", printed)
    assert "finished meanwhile by" in printed
    assert not lock.exists()
    go.unlink()
    child = begin_elsewhere()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    toys.run(0.25)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr(owner, "_EMPTY_SECONDS", 0.2)
    lock.touch()  # A process was killed between two operations.
    toys.run(0.125)
    lock.write_text("a process of another machine")
    lock.with_suffix(".owner").write_text("Slurm job 7, process 1 on elsewhere")
    toys.run(0.5)
    assert toys.trainings == 3
    assert capsys.readouterr().err.count("waiting") == 1
    assert not lock.exists()


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


def test_the_result_cache_can_be_off(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITCAPR_RESULT_CACHE", "off")
    toys.run(0.5)
    toys.run(0.5)
    assert toys.trainings == 2
    assert not Path("results/result_cache").exists()


def test_a_damaged_input_stops_the_job(toys: Toys) -> None:
    weights = toys.run(0.5) / "weights"
    weights.write_text("0.26 data")
    read = {"model": weights}
    with pytest.raises(UserError, match="not as train/model wrote it"):
        run_stage(toys.copy, log=Path("results/a/logs/copy.log"), read=read, target=Path("results/a/out/copy"))
    toys.run(0.5)
    assert toys.trainings == 2  # The result cache shares the damaged file.
    assert Path("results/a/out/copy").read_text() == "0.25 data"


def test_results_may_lie_anywhere(toys: Toys) -> None:
    """As in a workflow that uses this one as a module with a prefix."""
    toys.run(0.5, results=Path("study/results"))
    assert Path("study/results/a/runs/copy.json").exists()
    assert Path("study/results/result_cache").is_dir()
    assert not Path("results").exists()


def test_a_broken_cache_fails_no_stage(toys: Toys) -> None:
    Path("results").mkdir()
    Path("results/result_cache").write_text("not a folder")
    assert (toys.run(0.5) / "weights").exists()
    assert "warning: not stored in the result cache" in Path("results/a/logs/train/model.log").read_text()


def test_why_prints_the_record_and_its_inputs(toys: Toys, printed: Printed) -> None:
    toys.run(0.5)
    story = printed(why.main, Path("results/a/out/copy"))
    for expected in (
        *(
            "out/copy\n",
            "as it was made; whether the configuration still asks for it: vitcapr status\n",
            "made by   copy, on ",
            "the same now",
        ),
        *("\n  model/weights  (train/model, ", "\n    data.txt\n"),
    ):
        assert expected in story, story
    assert "rate 0.5" in printed(why.main, Path("results/a/model"), settings=True)
    assert "results/a: 2 jobs" in printed(why.main, Path("results/a"))
    Path("results/a").rename("elsewhere")
    story = printed(why.main, Path("elsewhere/out/copy"))
    assert "as it was made" in story
    assert "\n  model/weights  (train/model, " in story
    Path("elsewhere/out/copy").write_text("by hand")
    assert "CHANGED since" in printed(why.main, Path("elsewhere/out/copy"))


def test_why_of_what_nothing_made_is_one_line(toys: Toys) -> None:
    toys.run(0.5)
    Path("results/a/notes.txt").touch()
    with pytest.raises(UserError, match="no job is known to have made this"):
        why.main(Path("results/a/notes.txt"))
    with pytest.raises(UserError, match="nothing recorded here"):
        why.main(Path("data.txt"))


def test_diff_of_artefacts_goes_back_to_the_cause(toys: Toys) -> None:
    toys.run(0.5)
    toys.run(0.25, "b")
    copies = Path("results/a/out/copy"), Path("results/b/out/copy")
    causes = ["read weights: another content (train/model)", "  rate 0.5 -> 0.25", "the files differ"]
    assert why.compare(*copies) == causes
    assert why.compare(copies[0], copies[0]) == ["the files are the same, byte for byte"]
    assert "the files differ" not in why.compare(copies[0], Path("results/a/model"))
    both = [Path(f"results/{name}/out/both") for name in "ab"]
    for target in both:  # Two inputs of one name.
        read = {part: target.parents[1] / part / "file" for part in "xy"}
        for part, path in read.items():
            path.parent.mkdir()
            path.write_text(part)
        run_stage(toys.copy, log=target.parents[1] / "logs/both.log", read=read, target=target)
    assert why.compare(*both) == ["the files are the same, byte for byte"]


def test_diff_of_experiments_says_what_was_set_and_what_came_out(toys: Toys, printed: Printed) -> None:
    scores = "{0},d,test,m,beam,bleu_4,{1},,,3,p\n{0},d,test,m,beam,cider,1,,,3,p\n"
    summaries = [Path(f"results/{name}/summary.csv") for name in ("a", "b")]
    for path, rate, bleu in zip(summaries, (0.5, 0.25), (0.25, 0.5), strict=True):
        toys.run(rate, path.parent.name)
        path.write_text(f"{','.join(COLUMNS)}\n{scores.format(path.parent.name, bleu)}")
    text = printed(why.main, Path("results/a"), Path("results/b"))
    assert "train/model\n    rate 0.5 -> 0.25\n" in text
    assert "Changed: m, beam (test): BLEU-4 25.00 -> 50.00\n" in text
    assert "0 jobs have equal outputs; 1 have equal code and settings but other outputs" in text
    with pytest.raises(UserError, match="cannot be compared"):
        why.main(Path("results/a"), Path("results/b/out/copy"))
    with pytest.raises(UserError, match="nothing recorded here"):
        why.main(Path("results/a"), Path("results/c"))


def test_gc_takes_what_no_rule_makes_and_no_setting_uses(toys: Toys, printed: Printed, kept: Kept) -> None:
    toys.run(0.25)
    toys.run(0.5)
    Path("results/a/model/notes.txt").write_text("mine")
    Path("results/.jobs").mkdir()
    for name in ("long", "old"):
        Path(f"results/.jobs/{name}.json").write_text("{}")
    kept("a", "results/a/model/weights", "results/.jobs/long.json")
    listed = printed(gc.main)
    assert "a: copy  (" in listed
    assert "results/result_cache/" in listed
    assert "can be freed" in listed
    assert "deleted" in printed(gc.main, yes=True)
    assert not Path("results/a/out").exists()
    assert Path("results/a/model/weights").exists()
    assert [path.stem for path in Path("results/.jobs").iterdir()] == ["long"]
    assert "in use" in printed(gc.main)
    toys.run(0.25)
    assert toys.trainings == 3


def test_gc_deletes_nothing_of_others(toys: Toys, printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITCAPR_RESULT_CACHE", str(Path.cwd() / "shared"))
    toys.run(0.5)
    entries = snapshot(Path("shared"))
    Path("empty").mkdir()
    assert "other projects may use" in printed(gc.main, results=Path("empty"), yes=True)
    assert snapshot(Path("shared")) == entries
    # Two files with one name of an experiment: each keeps its results.
    for name in ("one.yaml", "two.yaml"):
        Path(name).write_text("experiment: a\n")
    wanted = {"one.yaml": {"results/a/out/copy"}, "two.yaml": {"results/a/model/weights"}}
    monkeypatch.setattr(gc, "output_files", lambda files: wanted[files[0].name])
    assert "in use" in printed(gc.main, configfile=[Path("one.yaml"), Path("two.yaml")], yes=True)


def test_gc_leaves_what_it_does_not_know_alone(toys: Toys, printed: Printed, kept: Kept) -> None:
    """Another experiment, a person's notes, and a folder without a store."""
    notes = toys.run(0.5) / "notes.txt"
    stored = Path("results/stores/mine/notes")
    stored.parent.mkdir(parents=True)
    unfinished = notes.parent / "checkpoint/state"
    unfinished.parent.mkdir()
    for file in (notes, stored, unfinished):
        file.write_text("mine")
    assert "name it with --configfile" in printed(gc.main, yes=True)
    kept("a", "results/a/out/copy")
    assert "a: train/model" in printed(gc.main, yes=True)
    assert list(snapshot(Path("results/a/model"))) == [notes.name]
    assert stored.exists()


def test_gc_of_a_copied_experiment_deletes_in_the_copy_alone(toys: Toys, printed: Printed, kept: Kept) -> None:
    toys.run(0.5)
    shutil.copytree("results/a", "results/copy")
    before = snapshot(Path("results/a"))
    kept("copy", "results/copy/out/copy")
    printed(gc.main, yes=True)
    assert snapshot(Path("results/a")) == before
    left = {"logs/copy.log", "logs/train/model.log", "out/copy", "runs/copy.json"}
    assert snapshot(Path("results/copy")).keys() == left


@pytest.mark.parametrize(
    "output", ["{here}/mine", "results/a/../../mine", "results/b/../../mine", "mine", "results/b/out", "results/a"]
)
def test_a_record_with_an_output_outside_its_experiment_is_left_out(
    toys: Toys, kept: Kept, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    toys.run(0.5)
    Path("mine").write_text("mine")
    record = Path("results/a/runs/copy.json")
    facts = json.loads(record.read_text())
    facts["outputs"][output.format(here=Path.cwd())] = next(iter(facts["outputs"].values()))
    record.write_text(json.dumps(facts))
    kept("a")
    gc.main(yes=True)
    assert "names an output outside its experiment" in capsys.readouterr().err
    assert Path("mine").exists()


def test_gc_follows_no_link_out_of_its_experiment(toys: Toys, printed: Printed, kept: Kept) -> None:
    model = toys.run(0.5)
    model.rename("model")
    model.symlink_to(Path("model").resolve())
    Path("results/link").symlink_to("a")
    before = snapshot(Path("results/a")) | snapshot(Path("model"))
    kept("link")
    printed(gc.main, yes=True)
    assert snapshot(Path("results/a")) | snapshot(Path("model")) == before
    kept("a")
    printed(gc.main, yes=True)
    assert sorted(path.name for path in Path("model").rglob("*")) == ["weights"]
    assert not Path("results/a/out").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the memory of a process from that of its parent")
def test_the_peak_memory_of_a_job_is_not_that_of_the_process_that_started_it() -> None:
    held = bytearray(b"1") * 200_000_000
    code = "from vitcapr.pipeline.run import measure; print(measure(0)['peak_memory_mb'])"
    peak = int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert 10 < peak < len(held) / 2**20
