"""The jobs of a finished project, and sandboxes in which one of them can run again."""

import hashlib
import json
import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FROM_NOTHING = ("extract", "extract_pixels", "extract_text")
"""Stages whose work lies in a store, which is not among the outputs that they declare."""
MEASURED = ("seconds.csv", "tables.md", "tables.html")
"""What align writes with the processor time of each fit."""
OF_ALL_EXPERIMENTS = ("results/summary.csv", "results/index.html")
"""Written by the jobs of all experiments; a sandbox holds one."""
NOT_ARTEFACTS = ("runs", "logs", ".digests.json", "result_cache", "writers.lock")


@dataclass(frozen=True)
class Job:
    """A job that has run in the project, from its record."""

    project: Path
    record: Path
    facts: dict[str, Any]

    @property
    def stage(self) -> str:
        return str(self.facts["stage"])

    @property
    def name(self) -> str:
        return f"{self.record.parts[1]}/{self.record.parent.name}/{self.record.stem}"

    @property
    def arguments(self) -> list[str]:
        """Of ``vitcapr``."""
        words = shlex.split(self.facts["command"])
        return words[words.index("stage") :]

    @property
    def options(self) -> dict[str, Any]:
        """What the rule handed to the stage."""
        return dict(json.loads(self.arguments[self.arguments.index("--job") + 1]))

    @property
    def by_hand(self) -> list[str]:
        """The same without a log, so that no run record counts."""
        words = self.arguments
        at = words.index("--log")
        return words[:at] + words[at + 2 :]

    @property
    def inputs(self) -> dict[str, str]:
        """Path -> SHA-256."""
        return {path: facts["sha256"] for path, facts in self.facts["inputs"].items()}

    @property
    def outputs(self) -> dict[str, str]:
        return {path: facts["sha256"] for path, facts in self.facts["outputs"].items()}

    def sandbox(self, folder: Path, cached: bool = False) -> Path:
        """The project as it was before the job ran. Files are hard links to the project's.

        Args:
            cached: keep the result cache, from which a cached stage is restored.
        """
        shutil.rmtree(folder, ignore_errors=True)
        log = str(self.record).replace("/runs/", "/logs/").removesuffix(".json") + ".log"
        left_out = {*self.outputs, str(self.record), log}
        experiments = {"/".join(Path(path).parts[:2]) for path in (*self.inputs, *self.outputs)}
        folders = {folder for folder in experiments if folder.startswith("results/")}
        folders |= {"stores", "results/stores", *(["results/result_cache"] if cached else [])}
        for path in (path for name in sorted(folders) for path in files_below(self.project / name)):
            name = path.relative_to(self.project).as_posix()
            if name in left_out or (self.stage in FROM_NOTHING and name.startswith("results/stores/")):
                continue
            link(path, folder / name)
        for name in (".digests.json", "summary.csv"):  # written by the jobs of all experiments
            if (self.project / "results" / name).exists():
                shutil.copy2(self.project / "results" / name, folder / "results")
        for path in self.project.iterdir():
            if path.name not in ("results", "stores") and not path.name.startswith("."):
                (folder / path.name).symlink_to(path)
        return folder

    def damage(self, folder: Path) -> str | None:
        """What is not as in the project after the job has run in the sandbox; None if everything is."""
        if problem := self.damage_of_outputs(folder):
            return problem
        for path in files_below(folder / "results"):
            name = path.relative_to(folder)
            whole = self.project / name
            if {*NOT_ARTEFACTS, *MEASURED} & {*name.parts} or name.name.endswith(".partial"):
                continue
            if name.as_posix() in OF_ALL_EXPERIMENTS:
                continue
            if not whole.exists():
                return f"{name} is in no whole run"
            if not path.samefile(whole) and path.read_bytes() != whole.read_bytes():
                return f"{name} has other bytes"
        return None

    def damage_of_outputs(self, folder: Path) -> str | None:
        """The same, of the job's own outputs."""
        for path, digest in self.outputs.items():
            file = folder / path
            if not file.is_file():
                return f"{path} is missing"
            if file.name not in MEASURED and hashlib.sha256(file.read_bytes()).hexdigest() != digest:
                return f"{path} has other bytes"
        return None


def files_below(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())


def link(file: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    os.link(file, place)


def leftovers(folder: Path) -> list[str]:
    """Temporary files that nothing will ever use."""
    found = [path for path in files_below(folder / "results") if path.name.endswith(".partial")]
    return [path.relative_to(folder).as_posix() for path in found]


def jobs_of(project: Path) -> list[Job]:
    """One for each stage and kind of inputs, in an order that is always the same."""
    found: dict[tuple[str, ...], Job] = {}
    for path in sorted(project.glob("results/*/runs/**/[!.]*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        kinds = sorted({each["option"] for each in (*facts["inputs"].values(), *facts["outputs"].values())})
        found.setdefault((facts["stage"], *kinds), Job(project, path.relative_to(project), facts))
    return list(found.values())
