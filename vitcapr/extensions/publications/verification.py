"""Verification of a publication: every job that can run here runs again, and every number is compared."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pandas as pd
import torch

from vitcapr.batches.sources import read_rows
from vitcapr.decoding.generate import open_captioner
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import read_config
from vitcapr.extensions.publications import rebuilding
from vitcapr.extensions.publications.contents import (
    CONFIGURATION,
    EXPERIMENT,
    INDEX,
    REPLAYED,
    STORES,
    SUMMARY,
    TRAINING_SCORES,
    Publication,
    PublishedJob,
)
from vitcapr.extensions.publications.differences import EXACT, Difference, compare_files, favoured
from vitcapr.files import read_json, sha256_bytes, sha256_file
from vitcapr.formats.captions import read_captions
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.model import CARD, layer_of, read_card
from vitcapr.formats.scores import read_summary
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.loader import part_names
from vitcapr.pipeline.code import job_code
from vitcapr.pipeline.fingerprint import code_changes
from vitcapr.pipeline.run_records import Records, Run
from vitcapr.pipeline.stage import Role, find_stage
from vitcapr.progress import Reporter
from vitcapr.store.listed_files import pull_list, read_list
from vitcapr.store.reader import open_features
from vitcapr.store.remote_folder import RemoteFolder

AGAIN, CHAIN = "again", "chain"
"""Folders with what jobs made of the published inputs, and of inputs that were themselves computed again."""
_NO_RUN = (UserError, OSError, ValueError, KeyError, IndexError, TypeError, RuntimeError)


class Number(NamedTuple):
    """One number of the table.

    Attributes:
        row: of the summary.
        status: ``equal``, ``scored`` (equal, from files on trust), ``floating``, ``different`` or ``trusted``.
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
    left_out: Sequence[str]


def verify(source: str, root: Path, report: Reporter) -> Receipt:
    """Verify the publication at ``source``, which is copied to the empty folder ``root``."""
    place = RemoteFolder(f"zip://::{source}" if source.endswith(".zip") else source)
    listed, content = read_list(place, INDEX, Publication, "a publication", "publish it")
    pull_list(place, listed, root, report)
    verification = Verification(root, listed)
    verification.check_files()
    verification.run_jobs(report)
    numbers, faults, floating = list(verification.numbers()), verification.faults, list[str]()
    for (record, file), found in verification.differences.items():
        for one in found:
            (floating if one.floating else faults).append(f"{file}: {one.what} ({record})")
    trusted = [run for run in verification.runs.values() if run.name not in verification.ran]
    return Receipt(sha256_bytes(content), numbers, faults, floating, trusted, listed.left_out)


class Verification:
    """The state of one verification, in a scratch folder that holds the pulled files.

    Attributes:
        differences: of each output of a job, by its record and place.
        skipped: the reason why a job did not run, by its record.
        latest: the file computed again in place of each published one that changed.
    """

    def __init__(self, root: Path, listed: Publication) -> None:
        self.root, self.folder, self.listed = root, root / EXPERIMENT, listed
        self.runs = {run.name: run for run in Records(self.folder).runs}
        self.faults, self.ran, self.made = list[str](), set[str](), set[str]()
        self.differences = dict[tuple[str, str], list[Difference]]()
        self.skipped, self.latest = dict[str, str](), dict[str, Path]()
        self.jobs = {place: job for job in listed.jobs for place in _places(job, Role.OUTPUT)}

    def check_files(self) -> None:
        """Compare the published files with one another, and rebuild the stores."""
        self.faults += rebuilding.check_records(self.listed, Records(self.folder))
        self.faults += rebuilding.check_models(self.folder)
        self._check("data", lambda: rebuilding.check_data(self.folder))
        for path in sorted(path for name in STORES for path in self.folder.glob(f"{name}*/manifest.json")):
            place, splits = path.relative_to(self.folder).as_posix(), list(self.listed.splits)
            self._check(place, partial(rebuilding.rebuild_store, self.folder, place, splits, self.root / "stores"))
        self._check(CONFIGURATION, self._check_settings)

    def _check(self, what: str, work: Callable[[], Iterable[str]]) -> None:
        try:
            self.faults += work()
        except _NO_RUN as error:
            self.faults.append(f"{what}: {error}")

    def _check_settings(self) -> Iterator[str]:
        """Yield jobs that are not recorded, or whose settings are not those of the configuration."""
        config = read_config(self.root / CONFIGURATION)
        for job in self.listed.jobs:
            run, stage = self.runs.get(job.record), find_stage(job.stage)
            if run is None or run.stage != job.stage:
                yield f"{job.record}: no such job is recorded"
            elif stage.settings is not None:
                parts = _places(job, Role.OUTPUT)[0].split("/")
                known = {**stage.settings.model_fields, **dict.fromkeys(["reranking"] if job.stage == "rerank" else [])}
                names = {"captioner": parts[1], "decoding": parts[2], "reranking": parts[2]} if len(parts) > 2 else {}
                named = SimpleNamespace(**{name: each for name, each in names.items() if name in known})
                own = stage.result_settings(stage.settings.from_config(config, named).canonical())
                for what, settings in (("its record", run.settings), ("the job", job.values.get("settings", {}))):
                    if stage.result_settings(settings) != own:
                        yield f"{job.record}: the settings of {what} are not those of {CONFIGURATION}"

    def run_jobs(self, report: Reporter) -> None:
        """Run every job that can run here, after the jobs that made its inputs."""
        waiting = list(self.listed.jobs)
        with report.track("verify", len(waiting), "jobs") as tracker:
            while waiting:
                unmade = {place for job in waiting for place in _places(job, Role.OUTPUT)}
                ready = [job for job in waiting if unmade.isdisjoint(_places(job, Role.INPUT))] or waiting
                waiting = [job for job in waiting if job not in ready]
                for job in ready:
                    report.line(f"verify: {job.record}")
                    self._run(job)
                    tracker.advance()

    def _reason(self, job: PublishedJob) -> str:
        """Return why a job cannot run here; empty if it can."""
        inputs = _places(job, Role.INPUT)
        if odd := [
            one for one in (*inputs, *_places(job, Role.OUTPUT)) if one.startswith("/") or ".." in one.split("/")
        ]:
            raise UserError("a job leads outside the publication", where=f"{job.record}: {odd[0]}")
        if job.stage not in REPLAYED or job.values.get("text_encoder"):
            return "this stage is not run again" if job.stage not in REPLAYED else "a text encoder is needed"
        if missing := [place for place in inputs if not (self.folder / place).is_file() and place not in self.made]:
            return f"{missing[0]} is not published"
        if "features" in self.listed.left_out and any(place.startswith(STORES) for place in inputs):
            return "the features are left out"
        cards = (read_json(self.folder / place) for place in inputs if place.endswith((CARD, "weight.json")))
        if any(card.get("language_model") for card in cards):
            return "a language model is needed"
        metrics = set(job.values.get("settings", {}).get("metrics", {}).get("caption", [])) - {"chair"}
        unknown = sorted(metrics - set(part_names("METRIC")))
        return f"the metric {unknown[0]} is not installed" if unknown else ""

    def _run(self, job: PublishedJob) -> None:
        changed = {place: self.latest[place] for place in _places(job, Role.INPUT) if place in self.latest}
        try:
            if reason := self._reason(job):
                self.skipped[job.record] = reason
                return
            self._call(job, AGAIN, {})
            self._try_arithmetics(job)
            if changed:
                self._call(job, CHAIN, changed)
        except _NO_RUN as error:
            self.differences[job.record, job.record] = [Difference(f"does not run on the published files: {error}")]
            return
        self.ran.add(job.record)
        likelihoods = partial(self._likelihoods, job) if job.stage == "decode" else None
        precision = job.values.get("settings", {}).get("decoding", {}).get("precision")
        arithmetic = "float32" if precision == "float32" else "bfloat16"
        for place in _places(job, Role.OUTPUT):
            self.made.add(place)
            published = self.folder / place
            pair = published, self.root / AGAIN / place
            found = compare_files(*pair, likelihoods, arithmetic) if published.is_file() else []
            if any(one.wording for one in found) and self._has_other_code(job):  # Its tables may be worded otherwise.
                found = [one._replace(floating=one.floating or one.wording) for one in found]
            if changed and place == job.values.get("per_image"):
                found = [*found, *favoured(published, self.root / CHAIN / place)]
            self.differences[job.record, place] = found
            if not published.is_file() or any(not one.wording for one in found):
                self.latest[place] = self.root / AGAIN / place
            if changed:
                self.latest[place] = self.root / CHAIN / place

    def _try_arithmetics(self, job: PublishedJob) -> None:
        """Decode in the arithmetic of the publisher's processor, if ``auto`` is another one here."""
        decoding = job.values.get("settings", {}).get("decoding", {})
        if decoding.get("precision") != "auto":
            return
        place = job.values["captions"]
        published, again = self.folder / place, self.root / AGAIN / place
        for precision in ("bfloat16", "float32"):
            if not published.is_file() or sha256_file(published) == sha256_file(again):
                return
            settings = {"decoding": {**decoding, "precision": precision}}
            self._call(job.model_copy(update={"values": {**job.values, "settings": settings}}), precision, {})
            own = self.root / precision / place
            if _changed(published, own) < _changed(published, again):
                again.write_bytes(own.read_bytes())

    def _has_other_code(self, job: PublishedJob) -> bool:
        """Return whether the code of a job, as its record has it, is not the code of today."""
        settings = find_stage(job.stage).result_settings(job.values.get("settings", {}))
        return any(code_changes(self.runs[job.record].code, job_code(find_stage(job.stage).module, settings)))

    def _call(self, job: PublishedJob, target: str, changed: Mapping[str, Path]) -> None:
        """Run a job on the published files, or on ``changed`` in place of some, into the folder ``target``."""

        def located(value: Any, role: Role) -> Any:
            if isinstance(value, dict):
                return {name: located(each, role) for name, each in value.items()}
            if isinstance(value, list) or value is None:
                return value and [located(each, role) for each in value]
            if role is Role.OUTPUT:
                return str(self.root / target / value)
            inside = [
                str(path)[: -len(place) or None] + value for place, path in changed.items() if _is_in(place, value)
            ]
            own = self.folder / value
            return inside[0] if inside else str(own if own.exists() else self.root / AGAIN / value)

        stage, values = find_stage(job.stage), dict(job.values)
        for role in (Role.INPUT, Role.OUTPUT):
            values |= {each.name: located(values.get(each.name), role) for each in stage.of_role(role)}
        values |= {"device": "cpu"} if "device" in stage.options else {}
        for path in _places(job, Role.OUTPUT):
            (self.root / target / path).parent.mkdir(parents=True, exist_ok=True)
        before = torch.get_num_threads()
        torch.set_num_threads(min(self.runs[job.record].made["threads"], 64) if job.record in self.runs else before)
        try:
            quiet = Reporter(stream=io.StringIO())
            stage(**stage.read(values), **{each.name: quiet for each in stage.of_role(Role.GIVEN)})
        finally:
            torch.set_num_threads(before)

    @torch.inference_mode()
    def _likelihoods(self, job: PublishedJob, captions: Mapping[str, Sequence[str]]) -> dict[str, list[float]]:
        """Return the log-probability of each word and of the end of given captions by the published model."""
        folder, features, data, known = (
            self.folder / job.values[name] for name in ("captioner", "features", "manifest", "vocabulary")
        )
        words, values, listed = Vocabulary.read(known), dict[str, list[float]](), read_manifest(data)
        model = open_captioner(folder, words, torch.float32).eval()
        with open_features(features).at_layer(layer_of(read_card(folder / CARD), "captioner")) as store:
            for image, caption in captions.items():
                read = read_rows(store, model.arrays, listed.rows_of([image]), torch.device("cpu"))
                memory, numbers = model.encode({name: one.float() for name, one in read.items()}), words.encode(caption)
                tokens = torch.tensor([numbers[:-1]])
                logits = model(
                    memory, tokens, torch.ones_like(tokens, dtype=torch.bool), torch.zeros(1, dtype=torch.long)
                )
                log_probs = logits.float().log_softmax(-1).gather(1, torch.tensor(numbers[1:])[:, None])
                values[image] = log_probs[:, 0].tolist()
        return values

    def numbers(self) -> Iterator[Number]:
        """Yield the state of every row of the summary."""
        summary = next(job for job in self.listed.jobs if job.stage == "summary")
        places = [place for place in _places(summary, Role.INPUT) if (self.folder / place).is_file()]
        stored = {place: read_json(self.folder / place) for place in places}
        for each in read_summary(self.folder / SUMMARY).to_dict("records"):
            row = {str(key): value for key, value in each.items()}
            keys = ("dataset", "split", "model", "decoding")
            own = [
                p
                for p, one in stored.items()
                if row["metric"] in one["metrics"] and all(row[k] == one[k] for k in keys)
            ]
            yield self._number(row, own[0]) if own else Number(row, "different", "no metrics file has this number")

    def _number(self, row: Mapping[str, Any], place: str) -> Number:
        """Return the state of a row of the summary whose metrics file is at ``place``."""
        job, again = self.jobs.get(place), self.root / AGAIN / place
        if fault := _disagreement(row, read_json(self.folder / place)):
            return Number(row, "different", f"{fault} in {place}")
        if job is None or job.record in self.skipped or row["metric"] in TRAINING_SCORES:
            reason = "the training captions are not published" if job else "this stage is not run again"
            reason = reason if job is None else self.skipped.get(job.record, reason)
            record = next((run.name for run in self.runs.values() if place in run.wrote), "none")
            return Number(row, "trusted", f"record {record}: {reason}")
        fault = _disagreement(row, read_json(again)) if again.is_file() else f"{job.record} does not run"
        behind = self._behind(place)
        if lost := [f"{record} ({self.skipped[record]})" for record in sorted(behind & self.skipped.keys())]:
            return Number(row, "different" if fault else "scored", fault or f"from files of {', '.join(lost)}")
        if fault or place not in self.latest:
            return Number(row, "different" if fault else "equal", fault)
        value = read_json(self.latest[place])["metrics"][row["metric"]]["value"]
        interval = "no interval" if pd.isna(row["low"]) else f"interval {row['low']:g} to {row['high']:g}"
        note = f"printed {row['value']:g}, from inputs computed again {value:g}; {interval}"
        inside = pd.isna(row["low"]) or row["low"] - EXACT <= value <= row["high"] + EXACT
        forged = not inside or any(
            not one.floating for (name, _), found in self.differences.items() if name in behind for one in found
        )
        status = "different" if forged else "floating" if abs(value - row["value"]) > EXACT else "equal"
        return Number(row, status, note)

    def _behind(self, place: str) -> set[str]:
        """Return the records of the jobs that made ``place`` or, directly or not, what it was made from."""
        waiting, records = [place], set[str]()
        while waiting:
            job = self.jobs.get(waiting.pop())
            if job is not None and job.record not in records:
                records.add(job.record)
                waiting += _places(job, Role.INPUT)
        return records


def _places(job: PublishedJob, role: Role) -> list[str]:
    """Return the places of the files that a job reads or writes."""

    def located(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: located(each) for name, each in value.items()}
        return list(map(located, value)) if isinstance(value, list) else value and Path(value)

    some = find_stage(job.stage).of_role(role)
    return [path.as_posix() for each in some for path in each.paths(located(job.values.get(each.name)))]


def _changed(published: Path, again: Path) -> int:
    """Return the number of images whose captions differ."""
    first, second = read_captions(published), read_captions(again)
    return sum(image not in second or one.caption != second[image].caption for image, one in first.items())


def _is_in(place: str, value: str) -> bool:
    return place == value or place.startswith(f"{value}/")


def _disagreement(row: Mapping[str, Any], metrics: Mapping[str, Any]) -> str:
    """Describe how a row of the summary differs from a metrics file; empty if it agrees."""
    empty = {"value": None, "low": None, "high": None, "n": None}
    other = {**empty, **metrics["metrics"].get(row["metric"], {}), "protocol": metrics["protocol"]}
    faults = list[str]()
    for key, two in other.items():
        one = None if pd.isna(row[key]) else row[key]
        if one != two and not (isinstance(one, float) and two is not None and abs(one - two) <= EXACT):
            faults.append(f"{key}: printed {one}, computed {two}")
    return "; ".join(faults)
