"""Publishing of an experiment: what its tables are made from, cut down to the scored splits."""

import json
import shlex
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import vitcapr
from vitcapr.api.model_files import ModelFiles
from vitcapr.errors import UserError
from vitcapr.extensions.publications.contents import (
    CONFIGURATION,
    CRATE,
    DATA,
    EXPERIMENT,
    FORMAT,
    INDEX,
    LOG,
    PAGE,
    PARTS,
    REPLAYED,
    ROWS,
    Publication,
    PublishedJob,
    part_of,
    read_log,
)
from vitcapr.files import read_json, sha256_bytes, sha256_file, write_json, write_text
from vitcapr.formats.containers import slices, write_array, write_frame
from vitcapr.formats.manifest import SCHEMAS, Manifest, read_manifest
from vitcapr.formats.model import CARD
from vitcapr.formats.store_manifest import SCALE, arrays_of_layer, read_sealed
from vitcapr.pipeline.records import Records, Run
from vitcapr.pipeline.stage import Role, find_stage
from vitcapr.progress import Reporter
from vitcapr.store.layout import identity_in, layouts_in
from vitcapr.store.listed_files import list_files, push_list
from vitcapr.store.reader import FeatureArray, open_features
from vitcapr.store.remote_folder import RemoteFolder

SUMMARY = "summary.csv"
_SEALED = ("features/", "text_features/")
_OPEN = ("CC0", "CC BY 4.0", "CC BY 3.0", "CC BY 2.0", "MIT", "Apache-2.0", "BSD", "public domain", "ODC-BY", "PDDL")
"""Licences under which captions and features are published without asking."""


@dataclass
class Plan:
    """The files and jobs of a publication.

    Attributes:
        results: the folder of the experiment.
        without: the parts that are left out.
    """

    results: Path
    without: Sequence[str] = ()
    jobs: list[Run] = field(default_factory=list)
    files: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if unknown := set(self.without) - PARTS.keys():
            raise UserError(f"--without {min(unknown)} is no part", remedy=f"the parts are {', '.join(PARTS)}")
        if not (self.results / SUMMARY).is_file():
            raise UserError("no table of scores", where=self.results / SUMMARY, remedy="run snakemake first")
        summary = self.records.writers(self.results / SUMMARY)
        metrics = {summary[0].place(path) for path in summary[0].inputs}
        scored = [run for run in self.records.runs if not metrics.isdisjoint(run.wrote)]
        self.splits = sorted({str(run.values["split"]) for run in scored if "split" in run.values})
        tables = [run for run in self.records.runs if run.stage in ("compare", "differences", "spread")]
        self._add([*summary, *tables])
        self.jobs.sort(key=lambda run: run.name)

    @cached_property
    def records(self) -> Records:
        return Records(self.results)

    def _add(self, runs: Sequence[Run]) -> None:
        """Add jobs with their files and, if they are run again, the jobs that made their inputs."""
        for run in runs:
            if run in self.jobs:
                continue
            self.jobs.append(run)
            inputs = {run.place(path) for path in run.inputs}
            tables = (run.place(path) for path, facts in run.outputs.items() if facts["option"] != "attention")
            self.files |= inputs | set(tables)
            writers = {place: self.records.writer(run, path) for path in run.inputs for place in [run.place(path)]}
            self._add([each for each in writers.values() if each is not None and self._is_replayed(each)])

    def _is_replayed(self, run: Run) -> bool:
        return run.stage in REPLAYED and run.values.get("split", self.splits[0]) in self.splits

    @property
    def published(self) -> list[str]:
        """The places of the files that are published as they are or cut down."""
        cards = ("card.json", "manifest.json")
        return sorted(p for p in self.files if part_of(p) not in self.without or Path(p).name in cards)

    @cached_property
    def arrays(self) -> dict[str, set[str]]:
        """The arrays that the scored models read, by the backbone whose store holds them."""
        arrays = dict[str, set[str]]()
        for place in sorted(p for p in self.files if p.startswith(PARTS["models"]) and Path(p).name == CARD):
            model = ModelFiles.open(self.results / Path(place).parent)
            read = model.model.arrays if model.kind == "captioner" else model.model.image.arrays
            layer = model.model.layer
            names = read if layer is None else dict(zip(("cls", "patches"), arrays_of_layer(layer), strict=True))
            read = read if layer is None else [names[name] for name in read]
            for backbone in (model.card["backbone"], *getattr(model.model, "augmented_views", [])):
                arrays.setdefault(backbone, set()).update(read)
        return arrays

    def check(self) -> None:
        """Check that every file is there and is the one that its job wrote.

        Raises:
            UserError: a file is missing, outside the experiment, or has changed since.
        """
        wrote = {place: (run, digest) for run in self.records.runs for place, digest in run.wrote.items()}
        for place in sorted(self.files):
            path = self.results / place
            if Path(place).is_absolute() or ".." in Path(place).parts or not path.is_file():
                raise UserError("a file of the results is missing", where=path, remedy="run snakemake")
            if place in wrote and sha256_file(path) != wrote[place][1]:
                what, remedy = f"the file is not as {wrote[place][0].name} wrote it", "run snakemake, then publish"
                raise UserError(what, where=path, remedy=remedy)

    def job(self, run: Run) -> PublishedJob:
        """Return the job with the places of its files."""
        text = shlex.split(run.command)
        given = text[text.index("--job") + 1]
        plain = json.loads(given) if given.startswith("{") else read_json(self.results.parent.parent / given)
        stage = find_stage(run.stage)
        files = [each.name for role in (Role.INPUT, Role.OUTPUT) for each in stage.of_role(role)]

        def placed(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: placed(each) for name, each in value.items()}
            return list(map(placed, value)) if isinstance(value, list) else run.place(value)

        values = {name: placed(each) if name in files and each is not None else each for name, each in plain.items()}
        values.pop("attention", None)
        return PublishedJob(record=run.name, stage=run.stage, values=values)


def check_terms(plan: Plan, config: Any) -> dict[str, dict[str, str | None]]:
    """Return licence and source of each part.

    Raises:
        UserError: the licence of the data set does not allow its publication, and no key of the configuration does.
    """
    data = read_manifest(plan.results / DATA)
    from vitcapr.config.features import Terms

    known = Terms.of(config.data)
    terms: dict[str, dict[str, str | None]] = {f"data set {data.dataset}": known.model_dump()}
    for place in sorted(place for place in plan.files if place.startswith(_SEALED)):
        stated = read_sealed(plan.results / place)["attributes"].get("terms", {}).get("backbone", {})
        terms[place.rpartition("/")[0]] = {"licence": stated.get("licence"), "source": None}
    derived = [name for name in ("references", "features", "captions") if name not in plan.without]
    is_open = (known.licence or "").startswith(_OPEN) and ";" not in (known.licence or "")
    if derived and not is_open and not config.publications.share_data:
        what = f"the licence of the data set {data.dataset} does not allow to publish its {' and '.join(derived)}"
        remedy = "set publications.share_data: true if you may, or leave them out: "
        remedy += " ".join(f"--without {name}" for name in derived)
        raise UserError(f"{what}: {known.licence or 'not known'}", where="data.licence", remedy=remedy)
    return terms


def publish(results: Path, target: str, config: Any, without: Sequence[str], report: Reporter, scratch: Path) -> str:
    """Publish the experiment in ``results`` at ``target``: a folder, an address of fsspec, or a zip on this machine.

    Args:
        scratch: an empty folder for what is written anew.

    Returns:
        The digest of the publication: that of its ``publication.json``.
    """
    plan = Plan(results, without)
    plan.check()
    terms = check_terms(plan, config)
    paths = dict(_write(plan, config, scratch))
    jobs = [plan.job(run) for run in plan.jobs]
    listed = Publication(
        format=FORMAT,
        experiment=results.resolve().name,
        program=f"vitcapr {vitcapr.__version__}",
        splits=plan.splits,
        left_out=list(plan.without),
        terms=terms,
        jobs=jobs,
        files=list_files(paths),
    )
    from vitcapr.extensions.publications.crate import crate_metadata

    if crate := crate_metadata(listed, plan.records.behind(sorted(plan.files)), report):
        write_json(scratch / CRATE, crate)
        paths[CRATE] = scratch / CRATE
    write_text(scratch / PAGE, page(listed, target))
    paths[PAGE] = scratch / PAGE
    listed = listed.model_copy(update={"files": list_files(paths)})
    content = _send(target, listed, paths, report)
    digest = sha256_bytes(content)
    entry = {"place": target, "time": datetime.now(UTC).isoformat(timespec="seconds"), "digest": digest}
    write_json(results / LOG, [*read_log(results), {**entry, "summary": sha256_file(results / SUMMARY)}])
    return digest


def _send(target: str, listed: Publication, paths: Mapping[str, Path], report: Reporter) -> bytes:
    if not target.endswith(".zip"):
        return push_list(RemoteFolder(target), INDEX, listed, paths, report)
    content = listed.model_dump_json(indent=2).encode()
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, path in sorted(paths.items()):
            packed.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
        packed.writestr(zipfile.ZipInfo(INDEX), content, zipfile.ZIP_DEFLATED)
    return content


def _write(plan: Plan, config: Any, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of every file; what is cut down is written to ``scratch``."""
    data = read_manifest(plan.results / DATA)
    for place in plan.published:
        if place.startswith(_SEALED) and "features" not in plan.without:
            for path in _write_rows(plan, place, data, scratch):
                yield f"{EXPERIMENT}/{path.relative_to(scratch).as_posix()}", path
        if place != DATA:
            yield f"{EXPERIMENT}/{place}", plan.results / place
    for path in _write_data(plan, data, scratch / "data"):
        yield f"{EXPERIMENT}/data/{path.name}", path
    for run in plan.records.behind(sorted(plan.files)):
        path = scratch / run.path.relative_to(plan.results)
        content = read_json(run.path)
        write_json(path, {**content, "made": {**content["made"], "user": "", "host": ""}})
        yield f"{EXPERIMENT}/{path.relative_to(scratch).as_posix()}", path
    write_text(scratch / CONFIGURATION, yaml.safe_dump(config.canonical(), sort_keys=False, allow_unicode=True))
    yield CONFIGURATION, scratch / CONFIGURATION


def _write_data(plan: Plan, data: Manifest, folder: Path) -> Iterator[Path]:
    """Write the data set with the captions and objects of the scored splits; others are blank or left out."""
    source = plan.results / "data"
    manifest = read_json(plan.results / DATA)
    files = {"images.parquet": manifest["files"]["images.parquet"]}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "images.parquet").write_bytes((source / "images.parquet").read_bytes())
    yield folder / "images.parquet"
    if "references" not in plan.without:
        captions = data.captions
        captions["text"] = captions["text"].where(captions["split"].isin(plan.splits), "")
        tables = {"captions.parquet": captions}
        if data.objects is not None:
            scored = data.images["image_id"][data.images["split"].isin(plan.splits)]
            tables["objects.parquet"] = data.objects[data.objects["image_id"].isin(scored)]
        for name, table in tables.items():
            write_frame(folder / name, slices(table), SCHEMAS[name])
            files[name] = sha256_file(folder / name)
            yield folder / name
    write_json(folder / "manifest.json", {**manifest, "image_root": ".", "files": files})
    yield folder / "manifest.json"


def scored_rows(data: Manifest, identity: str, splits: Sequence[str]) -> "np.ndarray[Any, Any]":
    """Return the rows of a store that are published, increasing."""
    table = data.image_table if identity == "image_id" else data.caption_table
    return np.flatnonzero(table.column("split").isin(splits).to_numpy())


def _write_rows(plan: Plan, place: str, data: Manifest, scratch: Path) -> Iterator[Path]:
    """Write the rows of the scored splits of the arrays of a store that models read, as they are stored."""
    path = plan.results / place
    sealed = read_sealed(path)
    rows, read = scored_rows(data, identity_in(sealed), plan.splits), plan.arrays.get(path.parent.name)
    with open_features(path) as store:
        store.check_rows(store.identity, data)
        for name, layout in layouts_in(sealed).items():
            if read is None or name.removesuffix(SCALE) in read:
                target = scratch / Path(place).parent / ROWS / f"{name}.npy"
                write_array(target, FeatureArray(store.path / name, layout).gather(rows))
                yield target


def page(listed: Publication, target: str) -> str:
    """Return the README of a publication: its badge line, parts and terms."""
    size = sum(file.size for file in listed.files.values())
    terms = [
        f"- {name}: licence {each['licence'] or 'not stated'}, {each['source'] or 'source not stated'}"
        for name, each in listed.terms.items()
    ]
    lines = [
        f"# {listed.experiment}",
        "",
        f"**verify this table**: `vitcapr verify {target}`",
        "",
        f"Written by {listed.program}; {len(listed.files)} files, {size / 1e6:.1f} MB; split {', '.join(listed.splits)}"
        + (f"; left out: {', '.join(listed.left_out)}" if listed.left_out else "")
        + ". The table is experiment/tables/scores.md.",
        "",
        "Terms:",
        "",
        *terms,
    ]
    return "\n".join(lines) + "\n"
