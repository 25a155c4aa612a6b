"""What ``snakemake --profile slurm`` asks Slurm for, job by job, written down by programs that stand in for Slurm's."""

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.checkouts import REPOSITORY, copy_checkout
from tests.forks import snakemake_forks

PROFILE = yaml.safe_load((REPOSITORY / "profiles/slurm/profile.yaml").read_text(encoding="utf-8"))
PROGRAMS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo", "sacctmgr", "sshare", "srun", "which")
"""All that the plugin may call; sacct is the one that comes with the profile."""
CONFIG = {
    "experiment": "shim",
    "features": {"tasks": 3},
    "captioners": {
        "several": {"backbone": "vit", "training": {"processes": 4}},
        "on_cpu": {"backbone": "vit", "architecture": "baseline", "training": {"device": "cpu"}},
    },
    "retrievers": {"pair": {"backbone": "vit", "text": {"kind": "features", "encoder": "sentences"}}},
    "text_encoders": {"sentences": {"source": "nowhere/sentences"}},
    "run": {"captioners": ["several", "on_cpu"], "retrievers": ["pair"]},
}

MODELS = ("--until", "decode", "embed")


@dataclass(frozen=True)
class Job:
    """A job as Snakemake plans it. ``name`` is what ``--target-jobs`` calls it."""

    name: str
    rule: str
    files: list[str]
    threads: int
    resources: dict[str, str]


@dataclass(frozen=True)
class Submission:
    """A call of sbatch: the jobs it was for, and its options in one line."""

    jobs: list[str]
    options: str


def planned(text: str) -> dict[str, Job]:
    """The jobs of a dry run's output."""
    jobs = {}
    for block in re.split(r"^(?:local)?rule (?=\w+:$)", text, flags=re.MULTILINE)[1:]:
        fields = dict(re.findall(r"^    (\w+): (.*)$", block, re.MULTILINE))
        rule = block.partition(":")[0]
        if "output" not in fields:
            continue
        wildcards = fields.get("wildcards", "").replace(", ", ",")
        job = Job(
            name=f"{rule}:{wildcards}",
            rule=rule,
            files=[*fields["output"].split(", "), *fields.get("benchmark", "").split()],
            threads=int(fields.get("threads", "1")),
            resources=dict(item.split("=", 1) for item in fields["resources"].split(", ") if "=" in item),
        )
        jobs[job.name] = job
    return jobs


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shim")
    copy_checkout(folder)
    (folder / "shim.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    (folder / "bin").mkdir()
    for command in PROGRAMS:
        program = (REPOSITORY / "tests/slurm/shim.py").read_text(encoding="utf-8")
        (folder / "bin" / command).write_text(f"#!{sys.executable} -ES\n{program}", encoding="utf-8")
        (folder / "bin" / command).chmod(0o755)
    return folder


def snakemake(folder: Path, *arguments: str) -> str:
    path = [folder / "bin", folder / "profiles/slurm/no-accounting", Path(sys.executable).parent]
    done = snakemake_forks().run(
        *("-m", "snakemake", "--nocolor", "--profile", "slurm", "--configfile", "shim.yaml"),
        *("--slurm-init-seconds-before-status-checks=1", "--seconds-between-status-checks=1", "--latency-wait=5"),
        *arguments,
        folder=folder,
        environment={**os.environ, "PATH": os.pathsep.join(map(str, path))},
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-4000:]
    return output


@pytest.fixture(scope="module")
def jobs(project: Path) -> dict[str, Job]:
    found = planned(snakemake(project, "--dry-run", "--cores=64", *MODELS))
    outputs = {name: job.files for name, job in found.items()}
    (project / "bin/outputs.json").write_text(json.dumps(outputs), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def submissions(project: Path, jobs: dict[str, Job]) -> list[Submission]:
    assert jobs
    snakemake(project, *MODELS)
    lines = (project / "bin/asked.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    return [Submission(call["jobs"], " ".join(call["options"])) for call in asked]


def of(submissions: list[Submission], job: str) -> str:
    """The options that a job was submitted with; it was submitted once."""
    (found,) = (submission.options for submission in submissions if job in submission.jobs)
    return found


def test_every_job_is_submitted_with_what_its_rule_needs(jobs: dict[str, Job], submissions: list[Submission]) -> None:
    assert sorted(job for submission in submissions for job in submission.jobs) == sorted(jobs)
    assert {job.rule for job in jobs.values()} >= {"data", "extract", "extract_text", "train_captioner", "decode"}
    for name, job in jobs.items():
        options = of(submissions, name)
        gpus = int(job.resources.get("gpu", "0"))
        on_gpu = job.rule in PROFILE["set-resources"]
        assert f"-p {'gpu-l40s' if on_gpu else 'cpu'}" in options, name
        assert f"--cpus-per-task={job.threads} " in options, name
        assert (f"--gpus={gpus}" in options) if gpus else ("--gpus" not in options), name
        assert f"-t {job.resources['runtime']} " in options, name
        memory = re.search(r"--mem (\d+)", options)
        assert memory, name
        # An array has a little more for the commands of its tasks.
        assert 0 <= int(memory[1]) - int(job.resources["mem_mb"]) <= (1 if "--array" in options else 0), name
        assert "--nodes=1" in options, name
        assert f"--comment rule_{job.rule}" in options, name


def test_the_papers_allocation(submissions: list[Submission]) -> None:
    """ViTCap-R: -G 1 -c 32 -p gpu-l40s -N 1."""
    for job in ("extract:experiment=shim,backbone=vit,task=0", "train_retriever:experiment=shim,retriever=pair"):
        options = of(submissions, job)
        for wanted in ("-p gpu-l40s", "--nodes=1", "--gpus=1", "--cpus-per-task=32"):
            assert wanted in options, (job, wanted)


def test_the_tasks_of_an_extraction_are_one_array(submissions: list[Submission]) -> None:
    (array,) = (submission for submission in submissions if "--array" in submission.options)
    assert sorted(array.jobs) == [f"extract:experiment=shim,backbone=vit,task={task}" for task in range(3)]
    assert "--array=1-3" in array.options


def test_a_training_requests_a_gpu_per_process_and_a_warning_signal(submissions: list[Submission]) -> None:
    several = of(submissions, "train_captioner:experiment=shim,captioner=several")
    assert "--gpus=4" in several
    assert "--signal=USR1@300" in several
    assert "--gpus" not in of(submissions, "train_captioner:experiment=shim,captioner=on_cpu")


def gpu_rules() -> set[str]:
    """The rules that may ask for a GPU; one that another rule is made from has the same needs."""
    found: set[str] = set()
    for path in sorted((REPOSITORY / "rules").glob("*.smk")):
        text = path.read_text(encoding="utf-8")
        blocks = re.split(r"^(?=(?:rule|use rule) )", text, flags=re.MULTILINE)
        for block in blocks:
            name = re.match(r"(?:use )?rule (?:\w+ as )?(\w+)", block)
            if name and re.search(r"^        (?:gpu=|\*\*stages\.\w+\.on_gpu\()", block, re.MULTILINE):
                found.add(name[1])
        for parent, name in re.findall(r"^use rule (\w+) as (\w+) with", text, re.MULTILINE):
            if parent in found:
                found.add(name)
    return found


def test_the_profile_knows_every_gpu_rule() -> None:
    rules = gpu_rules()
    assert {"train_backbone", "extract", "train_captioner", "decode", "decode_attentively", "embed"} <= rules
    assert set(PROFILE["set-resources"]) == rules
