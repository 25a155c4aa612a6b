"""Verification of a publication: every job that can run here runs again, and every number is compared."""

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pandas as pd

from vitcapr.errors import UserError
from vitcapr.extensions.publications.contents import (
    CONFIGURATION,
    DATA,
    EXPERIMENT,
    INDEX,
    REPLAYED,
    TRAINING_SCORES,
    Publication,
    PublishedJob,
)
from vitcapr.extensions.publications.differences import EXACT, Difference, Likelihoods, compare_files
from vitcapr.extensions.publications.publishing import SUMMARY
from vitcapr.extensions.publications.rebuilding import check_data, check_models, check_records, rebuild_store
from vitcapr.files import read_json, sha256_bytes
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.scores import read_summary
from vitcapr.loader import part_names
from vitcapr.pipeline.code import job_code
from vitcapr.pipeline.fingerprint import code_changes
from vitcapr.pipeline.records import Records, Run
from vitcapr.pipeline.stage import Role, Stage, find_stage
from vitcapr.progress import Reporter
from vitcapr.store.listed_files import pull_list, read_list
from vitcapr.store.remote_folder import RemoteFolder

AGAIN, CHAIN = "again", "chain"
"""Folders with what jobs made of the published inputs, and of inputs that were themselves computed again."""


class Replay(NamedTuple):
    """One job run again.

    Attributes:
        differences: by the place of the output.
        skipped: the reason why the job did not run; empty if it ran.
    """

    job: PublishedJob
    differences: Mapping[str, Sequence[Difference]] = {}
    skipped: str = ""


class Number(NamedTuple):
    """One number of the table.

    Attributes:
        status: ``equal``, ``floating``, ``different`` or ``trusted``.
        note: both values, or the record and the reason for the trust.
    """

    row: Mapping[str, Any]
    status: str
    note: str = ""


class Receipt(NamedTuple):
    """The outcome of a verification.

    Attributes:
        digest: of the publication.
        numbers: every number of its table.
        faults: files that are not what the publication says, with their images, scores or values.
        floating: differences that another processor or another version of the program explains.
        trusted: the records of the jobs that are not run again.
    """

    digest: str
    numbers: list[Number]
    faults: list[str]
    floating: list[str]
    trusted: list[Run]
    left_out: list[str]


def pull(source: str, root: Path, report: Reporter) -> tuple[Publication, str]:
    """Copy a publication to the folder ``root``, every file compared with its digest.

    Returns:
        The list of its files, and its digest.
    """
    place = RemoteFolder(f"zip://::{source}" if source.endswith(".zip") else source)
    listed, content = read_list(place, INDEX, Publication, "a publication", "publish it")
    pull_list(place, listed, root, report)
    return listed, sha256_bytes(content)


def verify(source: str, root: Path, report: Reporter) -> Receipt:
    """Verify the publication at ``source``, in the empty folder ``root``."""
    listed, digest = pull(source, root, report)
    verification = Verification(root, listed, report)
    numbers, faults, floating = verification.run(), verification.faults, list[str]()
    for replay in verification.replays:
        for file, found in replay.differences.items():
            for one in found:
                (floating if one.floating else faults).append(f"{file}: {one.what} ({replay.job.record})")
    return Receipt(digest, numbers, faults, floating, verification.trusted, list(listed.left_out))


@dataclass
class Verification:
    """The state of one verification, in a scratch folder that holds the pulled files.

    Attributes:
        faults: what is wrong with files apart from the jobs.
        latest: the file computed again in place of each published one that changed.
    """

    root: Path
    listed: Publication
    report: Reporter
    faults: list[str] = field(default_factory=list)
    replays: list[Replay] = field(default_factory=list)
    latest: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder = self.root / EXPERIMENT
        self.records = Records(self.folder)
        self._runs = {run.name: run for run in self.records.runs}
        self._made = set[str]()

    def run(self) -> list[Number]:
        """Check the files, run the jobs, and return the state of each number of the table."""
        reduced = {DATA, "data/captions.parquet", "data/objects.parquet"}
        self.faults += check_records(self.folder, self.listed, self.records, reduced)
        self.faults += check_models(self.folder, self.listed)
        self._guard("data", lambda: self.faults.extend(check_data(self.folder, self.listed)))
        for place in self._stores():
            self._guard(place, partial(self._rebuild, place))
        self._guard(CONFIGURATION, lambda: self.faults.extend(self._check_jobs()))
        waiting = list(self.listed.jobs)
        with self.report.track("verify", len(waiting), "jobs") as tracker:
            while waiting:
                unmade = {place for job in waiting for place in self._places(job, Role.OUTPUT)}
                ready = [job for job in waiting if unmade.isdisjoint(self._places(job, Role.INPUT))] or waiting
                for job in ready:
                    self.replays.append(self._replay(job))
                    tracker.advance()
                waiting = [job for job in waiting if job not in ready]
        return list(self._numbers())

    def _guard(self, what: str, work: Any) -> None:
        try:
            work()
        except UserError as error:
            self.faults.append(f"{what}: {error}")

    def _stores(self) -> list[str]:
        names = [name.removeprefix(f"{EXPERIMENT}/") for name in self.listed.files]
        return [n for n in names if n.startswith(("features/", "text_features/")) and n.endswith("/manifest.json")]

    def _rebuild(self, place: str) -> None:
        data = read_manifest(self.folder / DATA)
        self.faults += rebuild_store(self.folder, place, data, list(self.listed.splits), self.root / "stores")

    def _check_jobs(self) -> Iterator[str]:
        """Yield jobs that differ from their records, and records whose settings are not those of the configuration."""
        from vitcapr.experiment.experiment import read_config

        config = read_config(self.root / CONFIGURATION)
        for job in self.listed.jobs:
            run, stage = self._runs.get(job.record), find_stage(job.stage) if job.stage in REPLAYED else None
            if run is None or stage is None or run.stage != job.stage:
                yield f"{job.record}: no such job is recorded"
                continue
            if stage.settings is None:
                continue
            place = next(iter(self._places(job, Role.OUTPUT))).split("/")
            names = dict(zip(("captioner", "decoding", "split"), place[1:], strict=False))
            named = SimpleNamespace(**{n: each for n, each in names.items() if n in stage.settings.model_fields})
            named = SimpleNamespace(reranking=names.get("decoding")) if job.stage == "rerank" else named
            own = stage.result_settings(stage.settings.from_config(config, named).canonical())
            for what, settings in (("its record", run.settings), ("the job", job.values.get("settings", {}))):
                if stage.result_settings(settings) != own:
                    yield f"{job.record}: the settings of {what} are not those of {CONFIGURATION}"

    def _places(self, job: PublishedJob, role: Role) -> list[str]:
        """Return the places of the files that a job reads or writes."""

        def located(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: located(each) for name, each in value.items()}
            return list(map(located, value)) if isinstance(value, list) else value and Path(value)

        each_of_role = find_stage(job.stage).of_role(role)
        paths = (path for each in each_of_role for path in each.paths(located(job.values.get(each.name))))
        return [path.as_posix() for path in paths]

    def _reason(self, job: PublishedJob, stage: Stage) -> str:
        """Return why a job cannot run here; empty if it can."""
        if job.stage not in REPLAYED:
            return "this stage is not run again"
        inputs, outputs = self._places(job, Role.INPUT), self._places(job, Role.OUTPUT)
        if odd := [place for place in (*inputs, *outputs) if place.startswith("/") or ".." in place.split("/")]:
            raise UserError("a job leads outside the publication", where=f"{job.record}: {odd[0]}")
        missing = [place for place in inputs if not (self.folder / place).is_file() and place not in self._made]
        if missing:
            return f"{missing[0]} is not published"
        for place in (place for place in inputs if place.endswith(("card.json", "weight.json"))):
            if read_json(self.folder / place).get("language_model"):
                return "a language model is needed"
        if job.values.get("text_encoder"):
            return "a text encoder is needed"
        metrics = job.values.get("settings", {}).get("metrics", {})
        if metrics.get("instances") and "chair" in metrics.get("caption", []):
            return "the instance annotations are not published"
        unknown = set(metrics.get("caption", [])) - set(part_names("METRIC"))
        return f"the metric {min(unknown)} is not installed" if unknown else ""

    def _replay(self, job: PublishedJob) -> Replay:
        try:
            stage = find_stage(job.stage)
            if reason := self._reason(job, stage):
                return Replay(job, skipped=reason)
            self.report.line(f"verify: {job.record}")
            self._call(job, stage, AGAIN, {})
            inputs = self._places(job, Role.INPUT)
            if changed := {place: self.latest[place] for place in inputs if place in self.latest}:
                self._call(job, stage, CHAIN, changed)
        except (UserError, OSError, ValueError, KeyError, IndexError, RuntimeError) as error:
            return Replay(job, {job.record: [Difference(f"it does not run on the published files: {error}")]})
        found = dict[str, list[Difference]]()
        other_code = self._other_code(job, stage)
        for place in self._places(job, Role.OUTPUT):
            again, published = self.root / AGAIN / place, self.folder / place
            self._made.add(place)
            if published.is_file() and self.listed.has(place):
                likelihoods = partial(self._likelihoods, job) if job.stage == "decode" else None
                found[place] = compare_files(published, again, likelihoods)
                if other_code:  # A later version may word its tables otherwise.
                    found[place] = [each._replace(floating=each.floating or each.wording) for each in found[place]]
            else:
                self.latest[place] = again
            if any(not each.wording for each in found.get(place, [])):
                self.latest[place] = again
            if changed:
                self.latest[place] = self.root / CHAIN / place
        return Replay(job, {place: each for place, each in found.items() if each})

    def _other_code(self, job: PublishedJob, stage: Stage) -> bool:
        """Return whether the code of the job, as its record has it, is not the code of today."""
        run = self._runs.get(job.record)
        settings = stage.result_settings(job.values.get("settings", {}))
        return run is None or any(code_changes(run.code, job_code(stage.module, settings)))

    def _call(self, job: PublishedJob, stage: Stage, target: str, changed: Mapping[str, Path]) -> None:
        """Run a stage on the published files, or on ``changed`` in place of some, into the folder ``target``."""
        import torch

        run, made = self._runs.get(job.record), self.root / target

        def located(value: Any, role: Role) -> Any:
            if isinstance(value, dict):
                return {name: located(each, role) for name, each in value.items()}
            if isinstance(value, list):
                return [located(each, role) for each in value]
            if role is Role.OUTPUT:
                return str(made / value)
            published = self.folder / value
            inside = [path for place, path in changed.items() if place == value or place.startswith(f"{value}/")]
            if inside:
                return str(inside[0] if inside[0].name == Path(value).name else inside[0].parent)
            return str(published if published.exists() else self.root / AGAIN / value)

        values = dict(job.values)
        for role in (Role.INPUT, Role.OUTPUT):
            for each in stage.of_role(role):
                if values.get(each.name) is not None:
                    values[each.name] = located(values[each.name], role)
        values |= {"device": "cpu"} if "device" in stage.options else {}
        for path in self._places(job, Role.OUTPUT):
            (made / path).parent.mkdir(parents=True, exist_ok=True)
        before = torch.get_num_threads()
        torch.set_num_threads(min(run.made["threads"], 64) if run else before)
        try:
            quiet = Reporter(stream=io.StringIO())
            stage(**stage.read(values), **{each.name: quiet for each in stage.of_role(Role.GIVEN)})
        finally:
            torch.set_num_threads(before)

    def _likelihoods(self, job: PublishedJob, words: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[float]]:
        """Return the log-probabilities of captions by the published model, teacher-forced."""
        from vitcapr.extensions.publications.likelihoods import caption_likelihoods

        files = {name: self.folder / job.values[name] for name in ("captioner", "features", "manifest", "vocabulary")}
        return caption_likelihoods(**files, words=words)

    def _numbers(self) -> Iterator[Number]:
        """Yield the state of every row of the summary."""
        table = read_summary(self.folder / SUMMARY)
        summary = next((each for each in self.replays if each.job.stage == "summary"), None)
        places = [p for p in self._places(summary.job, Role.INPUT) if (self.folder / p).is_file()] if summary else []
        stored = {place: read_json(self.folder / place) for place in places}
        makers = {place: replay for replay in self.replays for place in self._places(replay.job, Role.OUTPUT)}
        for row in table.to_dict("records"):
            keys = ("dataset", "split", "model", "decoding", "protocol")
            own = [p for p in places if row["metric"] in stored[p]["metrics"] and _same(row, stored[p], keys[:-1])]
            place = own[0] if own else ""
            yield self._number({str(key): value for key, value in row.items()}, place, makers.get(place))

    def _number(self, row: Mapping[str, Any], place: str, maker: Replay | None) -> Number:
        if not place:
            return Number(row, "different", "no published metrics file has this number")
        published = read_json(self.folder / place)
        if fault := _disagreement(row, published):
            return Number(row, "different", f"{fault} in {place}")
        run = next((run for run in self.records.runs if place in run.wrote), None)
        record = f"record {run.name}, made {run.made['started'][:10]}" if run else "no record"
        if maker is None or maker.skipped:
            return Number(row, "trusted", f"{record}: {maker.skipped if maker else 'not run again'}")
        if row["metric"] in TRAINING_SCORES:
            return Number(row, "trusted", f"{record}: the training captions are not published")
        again = self.root / AGAIN / place
        if not again.is_file():
            return Number(row, "different", f"{maker.job.record} does not run on the published files")
        if fault := _disagreement(row, read_json(again)):
            return Number(row, "different", fault)
        if self.latest.get(place, again) == again:
            return Number(row, "equal")
        chained = read_json(self.latest[place])
        value = chained["metrics"][row["metric"]]["value"]
        upstream = [each for each in self.replays if self._is_behind(each.job, place)]
        forged = any(not one.floating for each in upstream for some in each.differences.values() for one in some)
        if forged:
            return Number(row, "different", f"printed {row['value']:g}, from captions computed again {value:g}")
        interval = "no interval" if pd.isna(row["low"]) else f"interval {row['low']:g} to {row['high']:g}"
        gap = abs(value - row["value"])
        status = "equal" if gap <= EXACT else "floating"
        note = f"printed {row['value']:g}, from files computed again {value:g}; {interval}"
        return Number(row, status, note if status == "floating" else "")

    def _is_behind(self, job: PublishedJob, place: str) -> bool:
        """Return whether a job made ``place`` or, directly or not, what it was made from."""
        makers = {output: each for each in self.listed.jobs for output in self._places(each, Role.OUTPUT)}
        waiting, seen = [place], set[str]()
        while waiting:
            maker = makers.get(waiting.pop())
            if maker is None or maker.record in seen:
                continue
            if maker == job:
                return True
            seen.add(maker.record)
            waiting += self._places(maker, Role.INPUT)
        return False

    @property
    def trusted(self) -> list[Run]:
        """The records of the jobs that are not run again and that the replayed ones depend on."""
        replayed = {replay.job.record for replay in self.replays if not replay.skipped}
        return [run for run in self.records.runs if run.name not in replayed]


def _same(row: Mapping[str, Any], metrics: Mapping[str, Any], keys: Sequence[str]) -> bool:
    return all(row[key] == metrics[key] for key in keys)


def _disagreement(row: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """Describe how a row of the summary differs from a metrics file; empty if it agrees."""
    other = {"value": None, "low": None, "high": None, "n": None, **metrics["metrics"].get(row["metric"], {})}
    other["protocol"] = metrics["protocol"]
    faults = []
    for key in ("value", "low", "high", "n", "protocol"):
        one, two = None if pd.isna(row[key]) else row[key], other[key]
        numbers = all(isinstance(each, int | float) for each in (one, two))
        if one != two and not (numbers and abs(one - two) <= EXACT):
            faults.append(f"{key}: printed {one}, computed {two}")
    return "; ".join(faults)
