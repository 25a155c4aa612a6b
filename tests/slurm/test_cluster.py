"""A small version of the demo through a real Slurm: what each job got, and that interruptions leave no trace.

Jobs are killed, cancelled, warned with SIGUSR1 and requeued in the middle of their work; afterwards everything is byte
for byte what a run without Slurm makes.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import cluster
import psutil
import pytest

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(3600)]

REPOSITORY = Path(__file__).parents[2]
CONFIG = """
experiment: small
data:
  scenes: {images: 400, size: 56}
text:
  vocabulary: {min_count: 1}
trained_backbone: {hidden_size: 32, layers: 1, heads: 2, epochs: 1}
features: {tasks: 2, chunk: 4, batch: 1}
captioners:
  attention: &small
    backbone: vit
    embedding_dim: 16
    hidden_dim: 16
    attention_dim: 16
    training: {phases: [{epochs: 5, batch_images: 8, learning_rate: 0.01}], save_every_steps: 5}
  baseline: {<<: *small, architecture: baseline, init_from_cls: false}
retrievers:
  paper:
    embedding_dim: 16
    training:
      phases: [{epochs: 5, batch_images: 8}]
      save_every_steps: 5
metrics: {metrics: [bleu, cider], bootstrap_samples: 20}
run:
  captioners: [attention, baseline]
  decodings: [greedy]
  rerankings: []
  retrievers: [paper]
"""
ROOT = "results/small"
SCORES = [
    f"{ROOT}/metrics/attention/greedy/test/metrics.json",
    f"{ROOT}/metrics/retrieval/paper/test/metrics.json",
]
BASELINE = f"{ROOT}/captioners/baseline/best.safetensors"
THREADS = (
    "extract=2",
    "embed=2",
    *(f"{rule}=1" for rule in ("train_backbone", "train_captioner", "train_retriever", "decode")),
)
MADE = [
    f"{ROOT}/features/vit/manifest.json",
    *(
        f"{ROOT}/{kind}/{file}"
        for kind in ("captioners/attention", "captioners/baseline", "retrievers/paper")
        for file in ("best.safetensors", "history.csv", "card.json")
    ),
    f"{ROOT}/captions/attention/greedy/test/captions.json",
    *SCORES,
]


def project(folder: Path, like: Path = REPOSITORY) -> Path:
    """A copy with a package of its own, so that an edit during the run concerns neither of the two projects."""
    folder.mkdir()
    for name in ("Snakefile", "config.yaml", "rules", "workflow", "profiles", "envs", "vitcapr"):
        source = like / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)
    (folder / "slurm").symlink_to("profiles/slurm")
    (folder / "small.yaml").write_text(CONFIG)
    return folder


def snakemake(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "snakemake", "--nocolor", "--configfile", "small.yaml", "--set-threads", *THREADS]
    # Without the shelf, which would hand the second run what the first has made.
    environment = {**os.environ, "PYTHONPATH": str(folder), "VITCAPR_SHELF": "off", "OMP_NUM_THREADS": "1"}
    with (folder / "said.txt").open("a") as said:
        return subprocess.Popen(
            [*command, *arguments], cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT, text=True
        )


@contextmanager
def ended(run: "subprocess.Popen[str]", folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """Afterwards the run has ended well; none is left behind when something else went wrong."""
    try:
        yield run
        assert run.wait() == 0, (folder / "said.txt").read_text()[-6000:]
    finally:
        run.kill()


def on_slurm(folder: Path, *arguments: str) -> "subprocess.Popen[str]":
    quick = ("--slurm-init-seconds-before-status-checks=2", "--seconds-between-status-checks=2")
    return snakemake(
        folder, "--profile", "slurm", "--slurm-status-command=squeue", "--slurm-no-account", *quick, *arguments
    )


def until(condition: Callable[[], object], run: "subprocess.Popen[str]", folder: Path, pause: float = 0.2) -> None:
    deadline = time.monotonic() + 900
    while not condition():
        assert run.poll() is None, (folder / "said.txt").read_text()[-6000:]
        assert time.monotonic() < deadline, "waited for 15 minutes"
        time.sleep(pause)


def stage(folder: Path, module: str, option: str = "") -> psutil.Process | None:
    """The process of a stage's own command in ``folder``, not of the shell or the snakemake around it."""
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            if line[1:3] == ["-m", module] and option in " ".join(line) and process.cwd() == str(folder):
                return process
        except psutil.Error:
            continue
    return None


Jobs = dict[str, dict[str, str]]


class Watch:
    """What Slurm says of its jobs, and what the stages say in their logs, looked up again and again: Slurm forgets the
    GPUs of a job that has ended, and Snakemake deletes the log of a job that it starts again."""

    def __init__(self, logs: Path) -> None:
        self.jobs: Jobs = {}
        self._folder, self._lines = logs, defaultdict[str, dict[str, None]](dict)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._stop.wait(0.3):
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
        return [job for job in self.jobs.values() if re.match(rf"rule_{rule}(_wildcards|$)", job.get("Comment", ""))]

    def table(self) -> str:
        """What each job got, a line a job."""
        lines = ["| job | rule | partition | CPUs | memory | GPU | starts | end |", "|" + " --- |" * 8]
        for number, job in self.jobs.items():
            task = f", task {job['ArrayTaskId']}" if "ArrayTaskId" in job else ""
            rule = job["Comment"].removeprefix("rule_").partition("_wildcards")[0]
            cells = [
                *(number, f"`{rule}`{task}", job["Partition"], job["NumCPUs"], job["MinMemoryNode"]),
                *(job["GRES"] or "none", str(1 + int(job["Restarts"])), job["JobState"]),
            ]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def said(self, log: str) -> str:
        """All that was said in the log by this job and those before it; every line has its time."""
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


class Story:
    """What happened on the cluster, for the tests to look at."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.watch = folder, Watch(folder / ROOT / "logs")
        self.devices: dict[str, str] = {}
        self.killed = ""

    def tell(self) -> None:
        with self.watch:
            with ended(on_slurm(self.folder, "--", *SCORES), self.folder) as run:
                self._extraction(run)
                self._trainings(run)
            with ended(on_slurm(self.folder, "--retries=0", "--slurm-requeue", "--", BASELINE), self.folder) as run:
                self._requeue(run)
            time.sleep(1)

    def _extraction(self, run: "subprocess.Popen[str]") -> None:
        """One task is killed when its first chunk is done, like a process that takes too much memory."""
        tasks: dict[str, psutil.Process] = {}

        def seen(task: str) -> bool:
            process = tasks.get(task) or stage(self.folder, "vitcapr.cli.extract", f"--task {task} ")
            if process is not None and task not in tasks:
                tasks[task] = process
                environment = process.environ()
                self.devices[task] = environment.get("CUDA_VISIBLE_DEVICES", "none")
                # Not the first, whose output Slurm's plugin expects of every task of an array (docs/slurm.md).
                if environment["SLURM_ARRAY_TASK_ID"] == "2":
                    self.killed = task
            return process is not None

        until(lambda: seen("0") & seen("1"), run, self.folder)
        chunks = [f"{50 * int(self.killed) + chunk:06d}.json" for chunk in range(50)]
        checksums = "results/stores/*/checksums"
        until(lambda: any(self.folder.glob(f"{checksums}/{chunks[0]}")), run, self.folder, 0.005)
        tasks[self.killed].kill()
        self.killed_after = sum(any(self.folder.glob(f"{checksums}/{chunk}")) for chunk in chunks)

    def _trainings(self, run: "subprocess.Popen[str]") -> None:
        """The captioner is killed, and cancelled when it has gone on; the retriever is told that its time is up."""
        waiting: dict[str, Callable[[], bool]] = {
            "killed": lambda: self._trains("captioner", "captioners/attention"),
            "warned": lambda: self._trains("retriever", "retrievers/paper"),
        }

        def strike() -> bool:
            for name in [name for name, due in waiting.items() if due()]:
                del waiting[name]
                getattr(self, f"_{name}")(waiting)
            return not waiting

        until(strike, run, self.folder)

    def _trains(self, kind: str, folder: str) -> bool:
        return self._state(folder).exists() and stage(self.folder, f"vitcapr.cli.train_{kind}") is not None

    def _state(self, folder: str) -> Path:
        return self.folder / ROOT / folder / "last/state.safetensors"

    def _killed(self, waiting: dict[str, Callable[[], bool]]) -> None:
        process = stage(self.folder, "vitcapr.cli.train_captioner")
        assert process is not None
        process.kill()
        waiting["cancelled"] = lambda: "continuing at" in self.watch.said("train_captioner/attention.log")

    def _cancelled(self, _: object) -> None:
        until_seen = time.monotonic() + 30
        while time.monotonic() < until_seen:
            try:
                job = self.watch.running("train_captioner")
            except ValueError:
                time.sleep(0.1)
                continue
            cluster.ask("scancel", job)
            return
        raise AssertionError("the captioner's job was not seen to run")

    def _warned(self, _: object) -> None:
        cluster.ask("scancel", "--signal=USR1", self.watch.running("train_retriever"))

    def _requeue(self, run: "subprocess.Popen[str]") -> None:
        """As a higher partition's job would do it; Slurm then waits two minutes, which a test need not."""
        until(lambda: self._trains("captioner", "captioners/baseline"), run, self.folder)
        self.requeued = next(job["JobId"] for job in self.watch.of("train_captioner") if job["JobState"] == "RUNNING")
        cluster.ask("scontrol", "requeue", self.requeued)
        until(lambda: self.watch.jobs[self.requeued]["JobState"] == "PENDING", run, self.folder)
        cluster.ask("scontrol", "update", f"JobId={self.requeued}", "StartTime=now")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    reason = cluster.why_not()
    if reason is not None:
        pytest.skip(reason)
    scratch = tmp_path_factory.mktemp("slurm")
    story = Story(project(scratch / "project"))
    with cluster.slurm(scratch / "daemons"):
        story.tell()
    print("", story.watch.table(), sep="\n")
    return story


@pytest.fixture(scope="module")
def local(story: Story, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without Slurm and without interruptions."""
    folder = project(tmp_path_factory.mktemp("local") / "project", story.folder)
    with ended(snakemake(folder, "--cores", "2", "--", *SCORES, BASELINE), folder):
        pass
    return folder


def test_each_job_got_what_it_asked_for(story: Story) -> None:
    assert {job["Partition"] for rule in ("data", "vocabulary", "seal", "score") for job in story.watch.of(rule)} == {
        "cpu"
    }
    for rule, cpus in (
        ("extract", "2"),
        ("embed", "2"),
        ("train_captioner", "1"),
        ("train_retriever", "1"),
        ("decode", "1"),
    ):
        jobs = story.watch.of(rule)
        assert jobs, rule
        for job in jobs:
            assert (job["Partition"], job["NumCPUs"], job["NumNodes"]) == ("gpu-l40s", cpus, "1"), job
            assert re.fullmatch(r"gpu:l40s:1\(IDX:[01]\)", job["GRES"]), job
    for rule, cpus in (("data", "4"), ("vocabulary", "1")):
        (job,) = story.watch.of(rule)
        assert (job["NumCPUs"], job["GRES"], job["MinMemoryNode"]) == (cpus, "", "4000M")
    assert {job["TimeLimit"] for job in story.watch.of("train_captioner")} == {"12:00:00"}


def test_the_tasks_of_an_extraction_ran_side_by_side_on_two_gpus(story: Story) -> None:
    array = [job for job in story.watch.of("extract") if "ArrayTaskId" in job]
    assert sorted(job["ArrayTaskId"] for job in array) == ["1", "2"]
    assert sorted(story.devices.values()) == ["0", "1"]


def test_a_killed_extraction_lost_at_most_one_chunk(story: Story) -> None:
    assert len(story.watch.of("extract")) == 3, "two tasks, and the killed one again"
    assert 1 <= story.killed_after < 50
    left = re.findall(r", (\d+) of 200 images to do", story.watch.said(f"extract/vit.{story.killed}.log"))
    assert left[0] == "200"
    assert 0 < int(left[1]) <= 200 - 4 * story.killed_after


def test_trainings_went_on_where_they_were_stopped(story: Story) -> None:
    captioner, retriever = (
        story.watch.said("train_captioner/attention.log"),
        story.watch.said("train_retriever/paper.log"),
    )
    assert captioner.count("continuing at epoch") == 2
    assert captioner.count("after SIGTERM") == 1, "a cancelled job has time to save"
    assert retriever.count("continuing at epoch") == 1
    assert retriever.count("after SIGUSR1") == 1
    states = sorted(job["JobState"] for job in story.watch.of("train_captioner") if "attention" in job["Comment"])
    assert states == ["CANCELLED", "COMPLETED", "FAILED"]


def test_a_requeued_job_is_the_same_job_and_went_on(story: Story) -> None:
    job = story.watch.jobs[story.requeued]
    assert (job["JobState"], job["Restarts"], job["Requeue"]) == ("COMPLETED", "1", "1")
    assert [other for other in story.watch.of("train_captioner") if "baseline" in other["Comment"]] == [job]
    log = story.watch.said("train_captioner/baseline.log")
    assert log.count("after SIGTERM") == log.count("continuing at epoch") == 1


@pytest.mark.parametrize("file", MADE)
def test_the_result_is_that_of_a_run_without_slurm(file: str, story: Story, local: Path) -> None:
    assert (story.folder / file).read_bytes() == (local / file).read_bytes()
