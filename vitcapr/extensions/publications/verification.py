"""Verification of a publication: every job that can run here runs again, and every number is compared."""

import io
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pandas as pd
import torch

from vitcapr.batches.sources import read_rows
from vitcapr.decoding.generate import open_captioner
from vitcapr.encoders.devices import resolve_dtype
from vitcapr.errors import UserError
from vitcapr.experiment.experiment import read_config
from vitcapr.experiment.lineage import Records
from vitcapr.extensions.publications import publication, rebuilding
from vitcapr.extensions.publications.deviations import EXACT, count_changed, favoured, find_differences, tolerance
from vitcapr.extensions.publications.publication import CONFIGURATION, EXPERIMENT, SUMMARY, TRAINING_SCORES, Publication
from vitcapr.files import read_json, sha256_bytes, sha256_file
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.model import CARD, layer_of, read_card
from vitcapr.formats.scores import read_summary
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.loader import part_names
from vitcapr.pipeline.run_records import Run
from vitcapr.pipeline.stage import Role, find_stage
from vitcapr.progress import Reporter
from vitcapr.store.listed_files import pull_list, read_list
from vitcapr.store.reader import open_features
from vitcapr.store.remote_folder import RemoteFolder

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


def verify(source: str, root: Path, report: Reporter) -> "Verification":
    """Verify the publication at ``source``, which is copied to the empty folder ``root``."""
    place = RemoteFolder(f"zip://::{source}" if source.endswith(".zip") else source)
    listed, content = read_list(place, publication.INDEX, Publication, "a publication", "publish it")
    pull_list(place, listed, root, report)
    verification = Verification(root, listed, sha256_bytes(content))
    verification.check_files()
    with report.track("verify", len(verification.jobs), "jobs") as tracker:
        for run in verification.jobs:
            report.line(f"verify: {run.name}")
            verification.replay(run)
            tracker.advance()
    return verification


class Verification:
    """The verification of the publication with this digest, whose files lie in the folder ``root``.

    Attributes:
        jobs: those that run again, by name.
        inputs, outputs: the places of their files, by the name of the job.
        faults: files that are not what the publication says, with their images, scores or values.
        floating: differences that another processor or another version of the program explains.
        forged: the names of the jobs with a fault.
        skipped: the reason why a job did not run, by its name.
        again: each file computed again from the published inputs, by its place.
        latest: each file computed again, from inputs that were computed again, if it or they differ.
    """

    def __init__(self, root: Path, listed: Publication, digest: str) -> None:
        self.root, self.folder, self.listed, self.digest = root, root / EXPERIMENT, listed, digest
        self.records = Records(self.folder)
        self.jobs = publication.replayed(self.records.runs, listed.splits)
        self.inputs = {run.name: publication.places(run, Role.INPUT) for run in self.jobs}
        self.outputs = {run.name: publication.places(run, Role.OUTPUT) for run in self.jobs}
        self.writers = {place: run for run in self.jobs for place in self.outputs[run.name]}
        self.faults, self.floating, self.forged, self.begun = list[str](), list[str](), set[str](), set[str]()
        self.skipped, self.again, self.latest = dict[str, str](), dict[str, Path](), dict[str, Path]()

    def check_files(self) -> None:
        """Compare the published files with one another, and rebuild the stores."""
        checks = {
            "records": rebuilding.check_records(self.listed, self.records),
            "data": rebuilding.check_images(self.folder),
        }
        for path in sorted(path for name in publication.STORES for path in self.folder.glob(f"{name}*/manifest.json")):
            place = path.relative_to(self.folder).as_posix()
            checks[place] = rebuilding.rebuild_store(self.folder, place, self.listed.splits, self.root / "stores")
        checks[CONFIGURATION] = self._check_settings()
        for what, check in checks.items():
            try:
                self.faults += check
            except _NO_RUN as error:
                self.faults.append(f"{what}: {error}")

    def _check_settings(self) -> Iterator[str]:
        """Yield jobs whose settings are not those of the configuration."""
        config = read_config(self.root / CONFIGURATION)
        for run in self.jobs:
            stage, (_, model, variant, *_) = find_stage(run.stage), [*self.outputs[run.name][0].split("/"), "", ""]
            if stage.settings is not None:
                names = SimpleNamespace(captioner=model, decoding=variant, reranking=variant)
                own = stage.settings.from_config(config, names).canonical()
                stated = publication.job_values(run, self.folder)["settings"].canonical()
                if stage.result_settings(stated) != stage.result_settings(own):
                    yield f"{run.name}: the settings of its record are not those of {CONFIGURATION}"

    def replay(self, run: Run) -> None:
        """Run a job again, if it can run here, after the jobs that made its inputs, and compare its outputs."""
        if run.name in self.begun:
            return
        self.begun.add(run.name)
        inputs = self.inputs[run.name]
        for writer in [self.writers[place] for place in inputs if place in self.writers]:
            self.replay(writer)
        changed = {place: self.latest[place] for place in inputs if place in self.latest}
        unpublished = {place: path for place, path in changed.items() if not (self.folder / place).is_file()}
        try:
            if reason := self._reason(run):
                self.skipped[run.name] = reason
                return
            again = latest = self._call(run, "again", unpublished)
            if run.stage == "decode" and publication.precision_of(run) == "auto":
                again = latest = self._in_closer_arithmetic(run, again, unpublished)
            if changed != unpublished:
                latest = self._call(run, "latest", changed)
            for place, path in again.items():
                different = self._compare(run, place, path, latest[place])
                if different or latest is not again:
                    self.latest[place] = latest[place]
            self.again |= again
        except _NO_RUN as error:
            self.forged.add(run.name)
            self.faults.append(f"{run.name}: does not run on the published files: {error} ({run.name})")

    def _reason(self, run: Run) -> str:
        """Return why a job cannot run here; empty if it can."""
        inputs = self.inputs[run.name]
        if part := publication.lost_part(run, self.listed.left_out):
            return f"the {part} are left out"
        if missing := [place for place in inputs if not (self.folder / place).is_file() and place not in self.again]:
            return f"{missing[0]} is not published"
        if run.values.get("text_encoder"):
            return "a text encoder is needed"
        cards = (read_json(self.folder / place) for place in inputs if place.endswith((CARD, "weight.json")))
        if any(card.get("language_model") for card in cards):
            return "a language model is needed"
        metrics = set(run.settings.get("metrics", {}).get("caption", [])) - {"chair"}
        unknown = sorted(metrics - set(part_names("METRIC")))
        return f"the metric {unknown[0]} is not installed" if unknown else ""

    def _in_closer_arithmetic(self, run: Run, again: dict[str, Path], changed: Mapping[str, Path]) -> dict[str, Path]:
        """Return captions in the arithmetic that ``auto`` was for the publisher: the one that changes fewer of them."""
        (place,) = again
        published = self.folder / place
        if not published.is_file() or sha256_file(published) == sha256_file(again[place]):
            return again
        here = resolve_dtype("auto", torch.device("cpu"))
        other = "float32" if here == torch.bfloat16 else "bfloat16"
        made = (again, self._call(run, other, changed, precision=other))
        return min(made, key=lambda outputs: count_changed(published, outputs[place]))

    def _call(self, run: Run, kind: str, changed: Mapping[str, Path], precision: str | None = None) -> dict[str, Path]:
        """Run a job on the published files, or on ``changed`` in place of some, and return its outputs by place.

        It runs in a folder of its own, with links to the files of the experiment.

        Args:
            precision: of a decoding; None for that of its record.
        """
        folder = self.root / f"{kind}.{run.name.replace('/', '.')}"
        shutil.copytree(self.folder, folder, copy_function=os.symlink)
        outputs = {place: folder / place for place in self.outputs[run.name]}
        for path in (*outputs.values(), *(folder / place for place in changed)):
            path.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
        for place, path in changed.items():
            (folder / place).symlink_to(path)
        torch.set_num_threads(min(run.made["threads"], 64))
        find_stage(run.stage)(**publication.job_values(run, folder, precision), report=Reporter(stream=io.StringIO()))
        return {place: path for place, path in outputs.items() if path.is_file()}

    def _compare(self, run: Run, place: str, again: Path, latest: Path) -> bool:
        """Note the differences of a published file and the same file computed again; return whether there is one."""
        published = self.folder / place
        if not published.is_file():
            return True
        largest = tolerance(publication.precision_of(run))
        likelihoods = partial(self._likelihoods, run) if run.stage == "decode" else None
        differences = [*find_differences(published, again, likelihoods, largest)]
        if latest != again and published.name == "per_image.parquet":
            differences += favoured(published, latest)
        for each in differences:
            (self.floating if each.floating else self.faults).append(f"{place}: {each.what} ({run.name})")
        self.forged |= {run.name for each in differences if not each.floating}
        return bool(differences)

    @torch.inference_mode()
    def _likelihoods(self, run: Run, captions: Mapping[str, Sequence[str]]) -> dict[str, list[float]]:
        """Return the log-probability of each word and of the end of given captions by the published model."""
        files, likelihoods = publication.job_values(run, self.folder), dict[str, list[float]]()
        words, data = Vocabulary.read(files["vocabulary"]), read_manifest(files["manifest"])
        model = open_captioner(files["captioner"], words, torch.float32).eval()
        layer = layer_of(read_card(files["captioner"] / CARD), "captioner")
        with open_features(files["features"]).at_layer(layer) as store:
            for image, caption in captions.items():
                features = read_rows(store, model.arrays, data.rows_of([image]), torch.device("cpu"))
                memory = model.encode({name: each.float() for name, each in features.items()})
                numbers = torch.tensor([words.encode(caption)])
                known = torch.ones_like(numbers[:, 1:], dtype=torch.bool)
                logits = model(memory, numbers[:, :-1], known, torch.zeros(1, dtype=torch.long))
                likelihoods[image] = logits.log_softmax(-1).gather(1, numbers[0, 1:, None])[:, 0].tolist()
        return likelihoods

    @property
    def trusted(self) -> list[Run]:
        """The records of the jobs that have not run again."""
        ran = {self.writers[place].name for place in self.again}
        return [run for run in self.records.runs if run.name not in ran]

    def numbers(self) -> Iterator[Number]:
        """Yield the state of every row of the summary."""
        places = {run.place(path) for run in self.records.writers(self.folder / SUMMARY) for path in run.inputs}
        stored = {place: read_json(self.folder / place) for place in places}
        for each in read_summary(self.folder / SUMMARY).to_dict("records"):
            row = {str(key): value for key, value in each.items()}
            names = {key: row[key] for key in ("dataset", "split", "model", "decoding")}
            own = [place for place, file in stored.items() if names.items() <= file.items()]
            own = [place for place in own if row["metric"] in stored[place]["metrics"]]
            yield self._number(row, own[0]) if own else Number(row, "different", "no metrics file has this number")

    def _number(self, row: Mapping[str, Any], place: str) -> Number:
        """Return the state of a row of the summary whose metrics file is at ``place``."""
        writer = self.writers.get(place)
        if writer is None or writer.name in self.skipped or row["metric"] in TRAINING_SCORES:
            record = next((run.name for run in self.records.runs if place in run.wrote), "none")
            reason = self.skipped.get(
                record, "the training captions are not published" if writer else "this stage is not run again"
            )
            fault = _disagreement(row, read_json(self.folder / place))
            return Number(row, "different" if fault else "trusted", fault or f"record {record}: {reason}")
        if place not in self.again:
            return Number(row, "different", f"{writer.name} does not run")
        if fault := _disagreement(row, read_json(self.again[place])):
            return Number(row, "different", fault)
        behind = {run.name for run in self.records.behind([place])}
        if lost := [f"{name} ({reason})" for name, reason in self.skipped.items() if name in behind]:
            return Number(row, "scored", f"from files of {', '.join(lost)}")
        if place not in self.latest:
            return Number(row, "equal")
        value = read_json(self.latest[place])["metrics"][row["metric"]]["value"]
        interval = "no interval" if pd.isna(row["low"]) else f"interval {row['low']:g} to {row['high']:g}"
        note = f"printed {row['value']:g}, from inputs computed again {value:g}; {interval}"
        inside = pd.isna(row["low"]) or row["low"] - EXACT <= value <= row["high"] + EXACT
        if not inside or not self.forged.isdisjoint(behind):
            return Number(row, "different", note)
        return Number(row, "floating" if abs(value - row["value"]) > EXACT else "equal", note)


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
