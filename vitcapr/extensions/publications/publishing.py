"""Publishing of an experiment: what its tables are made from, cut down to the scored splits."""

import json
import shlex
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import vitcapr
from vitcapr.api.model_files import ModelFiles
from vitcapr.config.features import Terms
from vitcapr.errors import UserError
from vitcapr.extensions.publications import contents
from vitcapr.extensions.publications.contents import DATA, EXPERIMENT, INDEX, REPLAYED, ROWS, STORES, SUMMARY
from vitcapr.extensions.publications.crate import crate_metadata
from vitcapr.files import atomic_path, read_json, sha256_bytes, sha256_file, write_bytes, write_json, write_text
from vitcapr.formats.containers import slices, write_array, write_frame
from vitcapr.formats.manifest import SCHEMAS, Manifest, read_manifest
from vitcapr.formats.model import CARD
from vitcapr.formats.store_manifest import SCALE, arrays_of_layer, read_sealed
from vitcapr.pipeline.run_records import Records, Run
from vitcapr.pipeline.stage import Role, find_stage
from vitcapr.progress import Reporter
from vitcapr.store.layout import identity_in, layouts_in
from vitcapr.store.listed_files import list_files, push_list
from vitcapr.store.reader import FeatureArray, open_features
from vitcapr.store.remote_folder import RemoteFolder

_OPEN = ("CC0", "CC BY 4.0", "CC BY 3.0", "CC BY 2.0", "MIT", "Apache-2.0", "BSD", "public domain", "ODC-BY", "PDDL")
"""Licences under which captions and features are published without asking."""


class Plan:
    """The files and jobs of a publication of the experiment in the folder ``results``, ``without`` some parts.

    Attributes:
        jobs: those that ``verify`` runs again.
        files: the places of their inputs and outputs.
        splits: the scored ones.

    Raises:
        UserError: there is no table of scores, or a file is missing or is not the one that its job wrote.
    """

    def __init__(self, results: Path, without: Sequence[str] = ()) -> None:
        if unknown := set(without) - contents.PARTS.keys():
            raise UserError(f"--without {min(unknown)} is no part", remedy=f"there are {', '.join(contents.PARTS)}")
        if not (results / SUMMARY).is_file():
            raise UserError("no table of scores", where=results / SUMMARY, remedy="run snakemake first")
        self.results, self.without, self.records = results, without, Records(results)
        self.jobs, self.files = list[Run](), set[str]()
        summary = self.records.writers(results / SUMMARY)
        metrics = {summary[0].place(path) for path in summary[0].inputs}
        scored = [run for run in self.records.runs if not metrics.isdisjoint(run.wrote)]
        self.splits = sorted({str(run.values["split"]) for run in scored if "split" in run.values})
        self._add([*summary, *(run for run in self.records.runs if run.stage in ("compare", "differences", "spread"))])
        wrote = {place: (run, digest) for run in self.records.runs for place, digest in run.wrote.items()}
        for place in sorted(self.files):
            if place.startswith("/") or ".." in place.split("/") or not (results / place).is_file():
                raise UserError("a file of the results is missing", where=results / place, remedy="run snakemake")
            if place in wrote and sha256_file(results / place) != wrote[place][1]:
                what = f"the file is not as {wrote[place][0].name} wrote it"
                raise UserError(what, where=results / place, remedy="run snakemake, then publish")

    def _add(self, runs: Iterable[Run]) -> None:
        """Add jobs with their files and, if they are run again, the jobs that made their inputs."""
        for run in (run for run in runs if run not in self.jobs):
            self.jobs.append(run)
            self.files |= {run.place(path) for path, facts in run.outputs.items() if facts["option"] != "attention"}
            self.files |= {run.place(path) for path in run.inputs}
            writers = [self.records.writer(run, path) for path in run.inputs]
            self._add(one for one in writers if one and one.stage in REPLAYED and self._is_scored(one))

    def _is_scored(self, run: Run) -> bool:
        return run.values.get("split", self.splits[0]) in self.splits

    @cached_property
    def arrays(self) -> dict[str, set[str]]:
        """The arrays that the scored models read, by the backbone whose store holds them."""
        arrays = dict[str, set[str]]()
        for place in (p for p in self.files if p.startswith(contents.PARTS["models"]) and Path(p).name == CARD):
            model = ModelFiles.open(self.results / Path(place).parent)
            config: Any = model.model
            own = config.arrays if model.kind == "captioner" else config.image.arrays
            read = own if config.layer is None else arrays_of_layer(config.layer)
            for backbone in (model.card["backbone"], *getattr(config, "augmented_views", [])):
                arrays.setdefault(backbone, set()).update(read)
        return arrays

    def job(self, run: Run) -> dict[str, Any]:
        """Return a job with the places of its files."""
        words = shlex.split(run.command)
        given = words[words.index("--job") + 1]
        plain = json.loads(given) if given.startswith("{") else read_json(self.results.parent.parent / given)
        stage = find_stage(run.stage)
        files = {each.name for role in (Role.INPUT, Role.OUTPUT) for each in stage.of_role(role)} & plain.keys()

        def placed(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: placed(each) for name, each in value.items()}
            return list(map(placed, value)) if isinstance(value, list) else value and run.place(value)

        values = {**plain, **{name: placed(plain[name]) for name in files}}
        values.pop("attention", None)
        return {"record": run.name, "stage": run.stage, "values": values}


def check_terms(plan: Plan, config: Any) -> dict[str, dict[str, str | None]]:
    """Return licence and source of the data set and of the networks.

    Raises:
        UserError: the licence of the data set does not allow its publication, and no key of the configuration does.
    """
    name, known = read_manifest(plan.results / DATA).dataset, Terms.of(config.data)
    terms: dict[str, dict[str, str | None]] = {f"data set {name}": known.model_dump()}
    for place in sorted(place for place in plan.files if place.startswith(STORES)):
        stated = read_sealed(plan.results / place)["attributes"].get("terms", {}).get("backbone", {})
        terms[place.rpartition("/")[0]] = {"licence": stated.get("licence"), "source": None}
    parts = [part for part in ("references", "features", "captions") if part not in plan.without]
    is_open = (known.licence or "").startswith(_OPEN) and ";" not in (known.licence or "")
    if parts and not is_open and not config.publications.share_data:
        what = f"the licence of {name} does not say that everybody may publish {', '.join(parts)}: {known.licence}"
        remedy = f"set publications.share_data: true if you may, or add {' '.join(f'--without {one}' for one in parts)}"
        raise UserError(what, where="data.licence", remedy=remedy)
    return terms


def publish(results: Path, target: str, config: Any, without: Sequence[str], report: Reporter, scratch: Path) -> str:
    """Publish the experiment in ``results`` at ``target``: a folder, an address of fsspec, or a zip on this machine.

    Args:
        scratch: an empty folder for what is written anew.

    Returns:
        The digest of the publication: that of its ``publication.json``.
    """
    plan = Plan(results, without)
    about: dict[str, Any] = {"format": "vitcapr-publication-1", "experiment": results.resolve().name}
    about |= {"left_out": list(without)}
    about |= {"program": f"vitcapr {vitcapr.__version__}", "splits": plan.splits, "terms": check_terms(plan, config)}
    about["jobs"] = [plan.job(run) for run in sorted(plan.jobs, key=lambda run: run.name)]
    behind = plan.records.behind(sorted(plan.files))
    paths = dict(_write(plan, behind, config, scratch))
    listed = contents.Publication.model_validate({**about, "files": list_files(paths)})
    if crate := crate_metadata(listed, behind, report):
        paths[contents.CRATE] = scratch / contents.CRATE
        write_json(paths[contents.CRATE], crate)
    paths[contents.PAGE] = scratch / contents.PAGE
    write_text(paths[contents.PAGE], _page(listed, target))
    listed = listed.model_copy(update={"files": list_files(paths)})
    digest = sha256_bytes(_send(target, listed, paths, report))
    entry = {"place": target, "time": datetime.now(UTC).isoformat(timespec="seconds"), "digest": digest}
    entry["summary"] = sha256_file(results / SUMMARY)
    write_json(results / contents.LOG, [*contents.read_log(results), entry])
    return digest


def _send(target: str, listed: contents.Publication, paths: Mapping[str, Path], report: Reporter) -> bytes:
    if not target.endswith(".zip"):
        return push_list(RemoteFolder(target), INDEX, listed, paths, report)
    content = listed.model_dump_json(indent=2).encode()
    with atomic_path(Path(target)) as partial, zipfile.ZipFile(partial, "w") as packed:
        for name, path in sorted(paths.items()):
            packed.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
        packed.writestr(zipfile.ZipInfo(INDEX), content, zipfile.ZIP_DEFLATED)
    return content


def _write(plan: Plan, behind: Sequence[Run], config: Any, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of every file; what is cut down is written to ``scratch``."""
    data, experiment = read_manifest(plan.results / DATA), scratch / EXPERIMENT
    for place in sorted(plan.files - {DATA}):
        if contents.part_of(place) not in plan.without or Path(place).name in (CARD, "manifest.json"):
            yield f"{EXPERIMENT}/{place}", plan.results / place
    if "features" not in plan.without:
        for place in (place for place in plan.files if place.startswith(STORES)):
            _write_rows(plan, place, data, experiment)
    _write_data(plan, data, experiment / "data")
    for run in behind:
        content = read_json(run.path)
        made = {**content["made"], "user": "", "host": ""}
        write_json(experiment / run.path.relative_to(plan.results), {**content, "made": made})
    write_text(scratch / contents.CONFIGURATION, yaml.safe_dump(config.canonical(), sort_keys=False))
    yield from ((path.relative_to(scratch).as_posix(), path) for path in sorted(scratch.rglob("*.*")) if path.is_file())


def _write_data(plan: Plan, data: Manifest, folder: Path) -> None:
    """Write the data set with the captions and objects of the scored splits; others are blank or left out."""
    manifest = read_json(plan.results / DATA)
    files = {"images.parquet": manifest["files"]["images.parquet"]}
    write_bytes(folder / "images.parquet", (plan.results / "data/images.parquet").read_bytes())
    if "references" not in plan.without:
        captions, scored = data.captions, data.images["image_id"][data.images["split"].isin(plan.splits)]
        tables = {
            "captions.parquet": captions.assign(text=captions["text"].where(captions["split"].isin(plan.splits), ""))
        }
        if data.objects is not None:
            tables["objects.parquet"] = data.objects[data.objects["image_id"].isin(scored)]
        for name, table in tables.items():
            write_frame(folder / name, slices(table), SCHEMAS[name])
            files[name] = sha256_file(folder / name)
    write_json(folder / "manifest.json", {**manifest, "image_root": ".", "files": files})


def scored_rows(data: Manifest, identity: str, splits: Sequence[str]) -> "np.ndarray[Any, Any]":
    """Return the rows of a store that are published, increasing."""
    table = data.image_table if identity == "image_id" else data.caption_table
    return np.flatnonzero(table.column("split").isin(splits).to_numpy())


def _write_rows(plan: Plan, place: str, data: Manifest, experiment: Path) -> None:
    """Write the rows of the scored splits of the arrays of a store that models read, as they are stored."""
    sealed = read_sealed(plan.results / place)
    rows, read = scored_rows(data, identity_in(sealed), plan.splits), plan.arrays.get(Path(place).parent.name)
    with open_features(plan.results / place) as store:
        store.check_rows(store.identity, data)
        for name, layout in layouts_in(sealed).items():
            if read is None or name.removesuffix(SCALE) in read:
                values = FeatureArray(store.path / name, layout).gather(rows)
                write_array(experiment / Path(place).parent / ROWS / f"{name}.npy", values)


def _page(listed: contents.Publication, target: str) -> str:
    """Return the README of a publication."""
    size = sum(file.size for file in listed.files.values()) / 1e6
    terms = [f"- {name}: {one['licence'] or 'licence not stated'}" for name, one in listed.terms.items()]
    left_out = f"; left out: {', '.join(listed.left_out)}" if listed.left_out else ""
    facts = f"{listed.program}; {len(listed.files)} files, {size:.1f} MB; split {', '.join(listed.splits)}{left_out}."
    badge = f"**verify this table**: `vitcapr verify {target}`"
    return "\n\n".join(
        [f"# {listed.experiment}", badge, f"{facts} The table is experiment/tables/scores.md.", *terms, ""]
    )
