"""A small version of the demo through a real Slurm: what each job got, and that interruptions leave no trace.

Jobs are killed, cancelled, preempted and warned with SIGUSR1 in the middle of their work, run out of memory and time,
and go on on machines of other arithmetic; Snakemake is killed while its jobs live on. Afterwards every file is byte for
byte what a run without Slurm makes.
"""

import os
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
import yaml

from tests.checkouts import REPOSITORY, copy_checkout
from tests.slurm import cluster

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(7200)]

CONFIG = """
experiment: small
data:
  scenes: {images: 200, size: 56, validation: 0.1, test: 0.1}
text:
  vocabulary: {min_count: 1}
trained_backbone: {hidden_size: 32, layers: 1, heads: 2, epochs: 1}
features: {tasks: 2, chunk: 4, batch: 1}
captioners:
  attention:
    backbone: vit
    embedding_dim: 16
    hidden_dim: 16
    attention_dim: 16
    training: {phases: [{epochs: 6, batch_images: 8, learning_rate: 0.01}]}
decodings:
  beam: {beam_size: 2, n_best: 2, max_length: 12, attention: true}
retrievers:
  paper:
    backbone: vit
    embedding_dim: 16
    training: {phases: [{epochs: 6, batch_images: 8}]}
rerankings:
  reranked: {decoding: beam, retriever: paper, weighing: {grid_steps: 2}}
  oracle: {decoding: beam, by: oracle}
metrics: {caption: [cider], bootstrap_samples: 20}
figures: {formats: [png], examples: 2}
run:
  captioners: [attention]
  decodings: [beam]
  rerankings: [reranked, oracle]
  retrievers: [paper]
"""
ROOT = "results/small"
TRAINED = {"captioner": "captioners/attention", "retriever": "retrievers/paper"}
THREADS = {
    "extract": 2,
    **dict.fromkeys(("train_backbone", "train_captioner", "train_retriever", "decode", "decode_attentively"), 1),
    **dict.fromkeys(("embed", "feature_statistics", "tune_reranking", "rerank", "score_retrieval"), 1),
}
"""As many on Slurm as without: another number may add up in another order."""
OF_ITS_RUN = {
    ".digests.json",
    "logs",
    "benchmarks",
    "runs",
    "gpu.csv",
    "gpu",
    "checksums",
    "index.html",
    "history.jsonl",
}
"""What says when, where, how and at what cost a file was made; and the figure of GPU use, of a cluster alone."""
# Slurm's plugin looks at its jobs ten seconds later each time that none has ended; here it looks every two.
HEAD = """
from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
RemoteExecutor.next_seconds_between_status_checks = property(lambda self: 2, lambda self, seconds: None)
main()
"""


SNAKEMAKE = (sys.executable, "-c", HEAD, "--nocolor", "--configfile", "small.yaml")


def project(folder: Path, like: Path = REPOSITORY) -> Path:
    """A copy with a package of its own, so that an edit during the run concerns neither of the two projects."""
    copy_checkout(folder, "vitcapr", like=like)
    (folder / "small.yaml").write_text(CONFIG)
    for file, (old, new) in CHANGES.items():
        text = (folder / file).read_text()
        assert old in text or new in text, file
        (folder / file).write_text(text if new in text else text.replace(old, new))
    return folder


CHANGES = {
    # The state is saved so often that a kill comes between two steps.
    "vitcapr/training/loop.py": ("_SAVE_STEPS = 200", "_SAVE_STEPS = 5"),
    # Slurm starts a job again on a machine of another generation, while there is this file.
    "vitcapr/encoders/devices.py": (
        "else cpu_has_bfloat16()",
        'else not Path("older").exists()',
    ),
    # The first attempt has too little memory.
    "rules/text.smk": ("**stages.vocabulary(),", "**stages.vocabulary(),\n    resources:\n        **growing(60, 300),"),
}


class Run:
    """Snakemake in the folder of a project; it is ended with the block."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        threads = [f"{rule}={number}" for rule, number in THREADS.items()]
        command = [*SNAKEMAKE, "--set-threads", *threads]
        # Without the result cache, which would hand one run what the other has made.
        environment = {**os.environ, "PYTHONPATH": str(folder), "VITCAPR_RESULT_CACHE": "off", "OMP_NUM_THREADS": "1"}
        self._output = folder / "output.txt"
        with self._output.open("w") as output:
            self._process = subprocess.Popen(
                [*command, *arguments], cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
            )

    def until(self, condition: Callable[[], object], pause: float = 0.2) -> None:
        deadline = time.monotonic() + 1800
        while not condition():
            assert self._process.poll() is None, self._output.read_text()[-6000:]
            assert time.monotonic() < deadline, "waited for half an hour"
            time.sleep(pause)

    def has_made_all(self) -> bool:
        """Once it has ended."""
        assert self._process.wait() == 0, self._output.read_text()[-6000:]
        return True

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()


def stage(folder: Path, command: str, option: str = "") -> psutil.Process | None:
    """The process of a stage's own command in ``folder``, not of the shell or the snakemake around it."""
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            words = " ".join(line[1:])
            if words.startswith(f"-m {command} ") and option in words and process.cwd() == str(folder):
                return process
        except psutil.Error:
            continue
    return None


LOGS = {"captioner": "train_captioner/attention.log", "retriever": "train_retriever/paper.log"}


def rule_of(job: dict[str, str]) -> str:
    return job.get("Comment", "").removeprefix("rule_").partition("_wildcards")[0]


class Watch:
    """What Slurm says of its jobs, and what the stages say in their logs, looked up again and again: Slurm forgets the
    GPUs of a job that has ended, and Snakemake deletes the log of a job that it starts again."""

    def __init__(self, logs: Path) -> None:
        self.jobs: dict[str, dict[str, str]] = {}
        self._folder, self._lines = logs, defaultdict[str, dict[str, None]](dict)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def _look_on(self) -> None:
        while not self._stop.wait(0.5):
            with suppress(subprocess.CalledProcessError):  # a busy controller does not answer
                self._look()

    def _look(self) -> None:
        for log in self._folder.glob("*/*.log"):
            with suppress(FileNotFoundError):
                lines = log.read_text().splitlines()
                self._lines[log.relative_to(self._folder).as_posix()] |= dict.fromkeys(lines)
        for line in cluster.ask("scontrol", "show", "job", "-d", "-o").splitlines():
            fields = dict(re.findall(r"(?:^| )([\w:/-]+)=(\S*)", line))
            if "JobId" in fields:
                known = self.jobs.setdefault(fields["JobId"], {})
                known |= {key: value for key, value in fields.items() if value or key not in known}

    def of(self, rule: str) -> list[dict[str, str]]:
        return [job for job in self.jobs.values() if rule_of(job) == rule]

    def log(self, log: str) -> str:
        """All lines of this job and of those before it, each with its time."""
        return "\n".join(self._lines[log])

    def running(self, rule: str) -> str:
        """The number of the job of ``rule`` that runs now."""
        (found,) = (job["JobId"] for job in self.of(rule) if job["JobState"] == "RUNNING")
        return found

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look()


class Story:
    """What happened on the cluster, for the tests to look at."""

    def __init__(self, folder: Path, controller_log: Path) -> None:
        self.folder, self.watch = folder, Watch(folder / ROOT / "logs")
        self._controller_log = controller_log
        self.devices: dict[str, str] = {}
        self.preempted: dict[str, str] = {}

    def run(self) -> None:
        site = ("--profile", "slurm", "--slurm-init-seconds-before-status-checks=2")
        with self.watch:
            with Run(self.folder, *site) as run:
                self._until = run.until
                self._kill_an_extraction()
                self._preempt_trainings(grace=300)
                self._preempt_trainings(grace=0)
                self._stop_trainings()
                held = self._hold_trainings(*TRAINED)
                self.alive = {kind: self.watch.running(f"train_{kind}") for kind in TRAINED}
            # Snakemake is killed, and the trainings live on.
            subprocess.run([*SNAKEMAKE, "--unlock"], cwd=self.folder, check=True, capture_output=True)
            with Run(self.folder, *site) as run:
                self._until = run.until
                self._until(lambda: all("waiting for its end" in self.watch.log(log) for log in LOGS.values()))
                (self.folder / "older").unlink()
                for process in held.values():
                    process.resume()
                self._reach_a_time_limit()
                assert run.has_made_all()
        self.controller = self._controller_log.read_text()

    def _kill_an_extraction(self) -> None:
        """The array's second task, when its first chunk is done, like a process that takes too much memory.

        The first task has ended by then: its output is what Slurm's plugin would delete (docs/slurm.md).
        """
        held = self._hold({task: ("vitcapr stage extract", f'"task":"{task}"') for task in "01"})
        environments = {task: process.environ() for task, process in held.items()}
        self.devices = {task: environment["CUDA_VISIBLE_DEVICES"] for task, environment in environments.items()}
        first, self.killed = sorted(held, key=lambda task: environments[task]["SLURM_ARRAY_TASK_ID"])
        held[first].resume()
        self._until(lambda: any(job["JobState"] == "COMPLETED" for job in self.watch.of("extract")))
        done = partial(self.folder.glob, f"results/stores/*/checksums/{25 * int(self.killed):06d}.json")
        held[self.killed].resume()
        self._until(lambda: any(done()), pause=0.005)
        held[self.killed].kill()

    def _preempt_trainings(self, grace: int) -> None:
        """A job of a higher partition takes all GPUs. Slurm waits two minutes before it starts the others again."""
        cluster.ask("scontrol", "update", "PartitionName=gpu-l40s", f"GraceTime={grace}")
        self._hold_trainings(*TRAINED)
        (self.folder / "older").touch()
        self.preempted = {kind: self.watch.running(f"train_{kind}") for kind in TRAINED}
        urgent = ("--partition=urgent", "--gpus=4", "--mem=100", "--comment=urgent", "--output=/dev/null")
        cluster.ask("sbatch", *urgent, "--wrap=sleep 1")
        for job in self.preempted.values():
            self._start_again(job)

    def _start_again(self, job: str, *changes: str) -> None:
        self._until(lambda: self.watch.jobs[job]["JobState"] == "PENDING")
        cluster.ask("scontrol", "update", f"JobId={job}", "StartTime=now", *changes)

    def _reach_a_time_limit(self) -> None:
        """A stage that saves nothing."""
        self._hold(
            {"decode": ("vitcapr stage decode", "attention.npz")}
        )  # not the other decoding, which runs beside it
        job = self.watch.running("decode_attentively")
        cluster.ask("scontrol", "update", f"JobId={job}", "TimeLimit=1")
        self._until(lambda: self.watch.jobs[job]["JobState"] == "TIMEOUT")

    def _stop_trainings(self) -> None:
        """The retriever is told four times that its time is up; the captioner is cancelled, and nears its limit."""
        self._hold_trainings("captioner")
        for _ in range(4):
            held, job = self._hold_trainings("retriever"), self.watch.running("train_retriever")
            cluster.ask("scancel", "--signal=USR1", job)
            time.sleep(2)  # the signal is on its way, and waits for the process to go on
            held["retriever"].resume()
            self._start_again(job)
        held = self._hold_trainings(*TRAINED)
        cluster.ask("scancel", self.watch.running("train_captioner"))
        held["captioner"].wait()
        self._hold_trainings("captioner")
        job = self.watch.running("train_captioner")
        cluster.ask("scontrol", "update", f"JobId={job}", "TimeLimit=1")
        self._start_again(job, "TimeLimit=720")

    def _hold_trainings(self, *kinds: str) -> dict[str, psutil.Process]:
        """Stopped in mid-training: each has saved its state and not yet ended."""
        held = self._hold({kind: (f"vitcapr stage train_{kind}", "") for kind in kinds})
        for kind, process in held.items():
            folder = self.folder / ROOT / TRAINED[kind] / "checkpoint"
            before = saved_at(folder)
            process.resume()
            self._until(lambda: saved_at(folder) > before, pause=0.005)  # noqa: B023
            process.suspend()
        return held

    def _hold(self, stages: dict[str, tuple[str, str]]) -> dict[str, psutil.Process]:
        """The processes of these commands, all there and stopped before they do anything."""
        held: dict[str, psutil.Process] = {}

        def caught() -> bool:
            for name in stages.keys() - held.keys():
                process = stage(self.folder, *stages[name])
                if process is not None:
                    process.suspend()
                    held[name] = process
            return held.keys() == stages.keys()

        self._until(caught)
        return held


def saved_at(checkpoint: Path) -> int:
    """When a training last saved its state, 0 if never."""
    return max((state.stat().st_mtime_ns for state in checkpoint.glob("*/state.safetensors")), default=0)


@pytest.fixture(scope="module")
def programs_of_the_machine() -> Iterator[None]:
    """A Slurm that is installed is on the PATH, which other tests do not see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["MACHINE_PATH"]]))
        yield


@pytest.fixture(scope="module")
def local(programs_of_the_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:  # noqa: ARG001
    """The same without Slurm and without interruptions, meanwhile."""
    reason = cluster.why_not()
    if reason is not None:
        pytest.skip(reason)
    with Run(project(tmp_path_factory.mktemp("local") / "project"), "--cores", "2") as run:
        yield run


@pytest.fixture(scope="module")
def story(local: Run, tmp_path_factory: pytest.TempPathFactory) -> Story:
    scratch = tmp_path_factory.mktemp("slurm")
    story = Story(project(scratch / "project", local.folder), scratch / "daemons/slurmctld.log")
    with cluster.slurm(scratch / "daemons"):
        story.run()
    return story


def test_each_job_got_the_requested_resources(story: Story) -> None:
    on_gpu = yaml.safe_load((REPOSITORY / "profiles/slurm/profile.yaml").read_text())["set-resources"]
    for job in story.watch.jobs.values():
        rule = rule_of(job)
        if rule == "urgent":
            continue
        assert (job["NumCPUs"], job["NumNodes"]) == (str(THREADS.get(rule, {"data": 4}.get(rule, 1))), "1"), job
        assert job["Partition"] == ("gpu-l40s" if rule in on_gpu else "cpu"), job
        assert re.fullmatch(r"gpu:l40s:1\(IDX:[0-3]\)" if rule in on_gpu else "", job["GRES"]), job
    # Without cgroups, the step ends out of memory, and its job has failed.
    vocabulary = [(job["JobState"], job["MinMemoryNode"]) for job in story.watch.of("vocabulary")]
    assert vocabulary == [("FAILED", "300M"), ("COMPLETED", "600M")]
    (data,) = story.watch.of("data")
    assert data["MinMemoryNode"] == "8000M"
    decoding = [(job["JobState"], job["TimeLimit"]) for job in story.watch.of("decode_attentively")]
    assert decoding[:2] == [("TIMEOUT", "00:01:00"), ("COMPLETED", "04:00:00")], "twice the time of the rule"


def test_the_tasks_of_an_extraction_ran_side_by_side_on_two_gpus(story: Story) -> None:
    array = [job for job in story.watch.of("extract") if "ArrayTaskId" in job]
    assert sorted(job["ArrayTaskId"] for job in array) == ["1", "2"]
    assert sorted(story.devices.values()) == ["0", "1"]


def test_a_killed_extraction_goes_on_and_the_other_task_keeps_its_output(story: Story) -> None:
    assert states(story, "extract") == ["COMPLETED", "COMPLETED", "FAILED"], "two tasks, and the killed one again"
    left = re.findall(r", (\d+) of 100 images to do", story.watch.log(f"extract/vit.{story.killed}.log"))
    assert left[0] == "100"
    assert 0 < int(left[1]) <= 96, "of a chunk that was done nothing is lost"


def test_a_preempted_training_is_the_same_job_and_went_on(story: Story) -> None:
    for kind, job in story.preempted.items():
        assert f"preempted JobId={job} has been requeued to reclaim resources" in story.controller
        used_up = {"captioner": 2, "retriever": 6}[kind]
        assert int(story.watch.jobs[job]["Restarts"]) == used_up, "with grace, without, and at each warning"


def test_trainings_went_on_where_they_were_stopped(story: Story) -> None:
    """Also on machines whose arithmetic would be another one, and beyond three time limits."""
    captioner, retriever = (story.watch.log(LOGS[kind]) for kind in ("captioner", "retriever"))
    assert states(story, "train_captioner") == ["CANCELLED", "COMPLETED", "COMPLETED"]
    assert states(story, "train_retriever") == ["COMPLETED", "COMPLETED"]
    assert (captioner.count("continuing at epoch"), retriever.count("continuing at epoch")) == (4, 6)
    assert [log.count("after SIGUSR1") for log in (captioner, retriever)] == [1, 4]
    assert [log.count("after SIGTERM") for log in (captioner, retriever)] == [3, 2]
    for log in (captioner, retriever):
        assert "the training began in bfloat16 and continues so; here, auto is float32" in log
        assert "is kept until this one ends" not in log


def test_jobs_that_outlive_snakemake_finish_their_work(story: Story) -> None:
    for kind, job in story.alive.items():
        log = story.watch.log(LOGS[kind])
        assert story.watch.jobs[job]["JobState"] == "COMPLETED"
        assert f"Slurm job {job}, process" in log
        assert "finished meanwhile by" in log


def test_every_file_is_that_of_a_run_without_slurm(story: Story, local: Run) -> None:
    assert local.has_made_all()
    here, there = made_in(story.folder), made_in(local.folder)
    assert here.keys() == there.keys()
    assert [name for name in here if here[name] != there[name]] == []


def states(story: Story, rule: str) -> list[str]:
    return sorted(job["JobState"] for job in story.watch.of(rule))


def made_in(folder: Path) -> dict[str, bytes]:
    results = folder / "results"
    names = {path: path.relative_to(results) for path in results.rglob("*") if path.is_file()}
    return {str(name): path.read_bytes() for path, name in names.items() if not OF_ITS_RUN & {*name.parts}}
