"""A copy of the whole project in which everything counts as computed, to be edited and dry-run."""

import ast
import contextlib
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.checkouts import copy_checkout
from tests.forks import Forks, planning_forks, snakemake_forks
from tests.plans.dry_runs import DryJob, dry_run
from tests.run_records import RECORD
from vitcapr.commands.stage import read_job
from vitcapr.files import write_json
from vitcapr.pipeline.code import job_code
from vitcapr.pipeline.run import Job
from vitcapr.pipeline.run_records import file_facts, record_of_log
from vitcapr.pipeline.stage import Role, find_stage


@dataclass(frozen=True)
class Project:
    root: Path
    configfile: str | None = None
    forks: Callable[[], Forks] = snakemake_forks

    @property
    def environment(self) -> dict[str, str]:
        hidden = ("VITCAPR_DATA", "VITCAPR_BACKBONES")
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        return kept | {"PYTHONPATH": str(self.root), "COLUMNS": "200"}

    def command(self, *arguments: str, program: Sequence[str] = ("snakemake",)) -> subprocess.CompletedProcess[str]:
        """A run of Snakemake, or of another program, with the experiment's file."""
        configured = ["--configfile", self.configfile] if self.configfile else []
        words = (*program, *configured, *arguments)
        return self.forks().run("-m", *words, folder=self.root, environment=self.environment)

    def snakemake(self, *arguments: str) -> str:
        done = self.command(*arguments)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout + done.stderr

    def dry_run(self, *arguments: str) -> list[DryJob]:
        """The jobs of a dry run, with the experiment's file."""
        configured = ["--configfile", self.configfile] if self.configfile else []
        return dry_run(self.root, *configured, *arguments, environment=self.environment, forks=self.forks)

    def jobs(self, *targets: str) -> list[DryJob]:
        """Those of a dry run, without figures that the edits do not list."""
        from tests.experiment.edits import DRAWN

        jobs = self.dry_run("--", *targets)
        return [job for job in jobs if job.rule_name in DRAWN or not job.rule_name.startswith("draw_")]

    def plan(self, values: dict[str, Any], *arguments: str) -> list[DryJob]:
        """A dry run of another experiment."""
        (self.root / "planned.yaml").write_text(yaml.safe_dump({"experiment": "demo", **values}), encoding="utf-8")
        options = ("--configfile", "planned.yaml", *arguments)
        return dry_run(self.root, *options, environment=self.environment, forks=self.forks)

    def stale_rules(self, *targets: str) -> set[str]:
        return {job.rule_name for job in self.jobs(*targets)}

    def stale_jobs(self) -> set[str]:
        return {job.name for job in self.jobs()}

    def status(self) -> str:
        done = self.command(program=("vitcapr", "status"))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def finish(self) -> None:
        """Put an empty file for every output, have Snakemake note that all is done, and write the records."""
        jobs = self.dry_run()
        for job in jobs:
            for name in job.output:
                path = self.root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        self.snakemake("--touch", "--forceall", "--cores", "1")
        notes = [
            json.loads(path.read_text()) for path in (self.root / ".snakemake/metadata").rglob("*") if path.is_file()
        ]
        params = {note["log"][0]: note["params"] for note in notes if note["log"]}
        with contextlib.chdir(self.root):
            for job in jobs:
                words = shlex.split(str(job.shellcmd))
                stage = find_stage(words[words.index("stage") + 1])
                texts = (ast.literal_eval(each) for each in params[job.log[0]])
                made = json.loads(next(text for text in texts if text.startswith('{"code":')))
                code = job_code(stage.module, made["settings"])
                run = Job(stage, read_job(words[words.index("--job") + 1]))
                facts = {"inputs": file_facts(run.files(Role.INPUT)), "outputs": file_facts(run.files(Role.OUTPUT))}
                content = {**RECORD, **made, **facts, "stage": stage.name, "code": code}
                write_json(self.root / str(record_of_log(Path(job.log[0]))), content)

    def copy(self, target: Path) -> "Project":
        shutil.copytree(self.root, target, symlinks=True)
        return Project(target, self.configfile)

    def replace(self, file: str, old: str, new: str) -> None:
        path = self.root / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{file} has no {old!r}: the test must follow the file"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")

    def append(self, file: str, line: str = "\nMORE = 1\n") -> None:
        assert (self.root / file).is_file(), f"there is no {file}: the test must follow it"
        with (self.root / file).open("a", encoding="utf-8") as stream:
            stream.write(line)

    def add(self, file: str, text: str) -> None:
        assert not (self.root / file).exists()
        (self.root / file).write_text(text, encoding="utf-8")

    def configure(self, **values: object) -> None:
        """Set dotted keys, spelled with two underscores, in the experiment's file."""
        assert self.configfile
        path = self.root / self.configfile
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        for key, value in values.items():
            section = config
            *parents, last = key.split("__")
            for part in parents:
                section = section.setdefault(part, {})
            section[last] = value
        path.write_text(yaml.safe_dump(config), encoding="utf-8")


def rules_of(jobs: list[DryJob]) -> set[str]:
    """The rules of a dry run's jobs."""
    return {job.rule_name for job in jobs}


TWO_CAPTIONERS = {
    "experiment": "two",
    "captioners": {"attention": {"backbone": "vit"}, "plain": {"backbone": "vit", "architecture": "baseline"}},
    "retrievers": {"paper": {"backbone": "vit"}},
    "rerankings": {
        "reranked": {"decoding": "beam", "retriever": "paper"},
        "oracle": {"decoding": "beam", "by": "oracle"},
    },
    "run": {"captioners": ["attention", "plain"], "decodings": ["greedy", "beam"]},
}

PHOTOGRAPHS = {
    "experiment": "photographs",
    "data": {"dataset": "flickr8k", "flickr8k": {"images": "photographs", "text": "text"}},
    "word_vectors": {"glove": {"path": "vectors.txt", "dimension": 2}},
    "backbones": {"local": {"source": "weights"}},
    "captioners": {"small": {"backbone": "local", "word_vectors": "glove", "embedding_dim": 2}},
    "retrievers": {"pair": {"backbone": "local"}},
    "rerankings": {
        "by_pair": {"decoding": "beam", "retriever": "pair"},
        "oracle": {"decoding": "beam", "by": "oracle"},
    },
    "run": {
        "captioners": ["small"],
        "decodings": ["greedy"],
        "rerankings": ["by_pair", "oracle"],
        "retrievers": ["pair"],
    },
}


def project_of(root: Path, values: dict[str, Any]) -> Project:
    """A copy with an experiment's file of these values."""
    copy_checkout(root, "vitcapr")
    project = Project(root, f"{values['experiment']}.yaml")
    project.add(str(project.configfile), yaml.safe_dump(values))
    return project


@pytest.fixture(scope="session")
def finished_two(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = project_of(tmp_path_factory.mktemp("two") / "project", TWO_CAPTIONERS)
    project.finish()
    return project


@pytest.fixture(scope="session")
def finished_photographs(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = project_of(tmp_path_factory.mktemp("photographs") / "project", PHOTOGRAPHS)
    for name in ("photographs", "text", "weights"):
        (project.root / name).mkdir()
    for name in ("photographs/1.jpg", "photographs/2.jpg", "text/Flickr8k.token.txt", "weights/model.safetensors"):
        project.add(name, f"first {name}\n")
    project.add("weights/config.json", '{"model_type": "vit"}')
    project.add("vectors.txt", "dog 1 2\n")
    project.finish()
    return project


@pytest.fixture
def two(finished_two: Project, tmp_path: Path) -> Project:
    """Rendered pictures, an attentive and a plain captioner, everything computed."""
    return finished_two.copy(tmp_path / "two")


@pytest.fixture
def photographs(finished_photographs: Project, tmp_path: Path) -> Project:
    """The user's photographs, captions, word vectors and backbone, everything computed."""
    return finished_photographs.copy(tmp_path / "photographs")


@pytest.fixture
def fresh(tmp_path: Path) -> Project:
    """The default run, nothing computed, with the installed package."""
    copy_checkout(tmp_path / "project")
    return Project(tmp_path / "project", forks=planning_forks)
