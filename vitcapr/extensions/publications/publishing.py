"""Publishing of an experiment: what its tables are made from, cut down to the scored splits."""

import zipfile
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import vitcapr
from vitcapr.api.model_files import ModelFiles
from vitcapr.config.features import Terms
from vitcapr.errors import UserError
from vitcapr.experiment.copies import record_copy
from vitcapr.experiment.lineage import Records
from vitcapr.extensions.publications import publication
from vitcapr.extensions.publications.crate import crate_metadata
from vitcapr.extensions.publications.publication import DATA, EXPERIMENT, INDEX, ROWS, STORES, SUMMARY, is_in
from vitcapr.files import atomic_path, read_json, sha256_bytes, sha256_file, write_bytes, write_json, write_text
from vitcapr.formats.containers import slices, write_array, write_frame
from vitcapr.formats.manifest import SCHEMAS, Manifest, read_manifest
from vitcapr.formats.model import CARD
from vitcapr.formats.store_manifest import SCALE, arrays_of_layer, read_sealed
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
        runs: the records of all jobs behind the tables.
        jobs: those that ``verify`` runs again.
        files: the places of their inputs and outputs.
        splits: the scored ones.

    Raises:
        UserError: there is no table of scores, or a file is missing or is not the one that its job wrote.
    """

    def __init__(self, results: Path, without: Collection[str] = ()) -> None:
        if unknown := set(without) - publication.PARTS.keys():
            raise UserError(f"--without {min(unknown)} is no part", remedy=f"there are {', '.join(publication.PARTS)}")
        if not (results / SUMMARY).is_file():
            raise UserError("no table of scores", where=results / SUMMARY, remedy="run snakemake first")
        self.results, self.without, records = results, without, Records(results)
        tables = [run for run in records.runs if run.stage in publication.TABLES]
        self.runs = records.behind(place for run in tables for place in run.wrote)
        metrics = {run.place(path) for run in records.writers(results / SUMMARY) for path in run.inputs}
        scored = [run for run in self.runs if not metrics.isdisjoint(run.wrote)]
        self.splits = sorted({str(run.values["split"]) for run in scored if "split" in run.values})
        self.jobs = publication.replayed(self.runs, self.splits)
        files = [(path, run, facts) for run in self.jobs for path, facts in (*run.inputs.items(), *run.outputs.items())]
        self.files = {run.place(path) for path, run, facts in files if facts["option"] != "attention"}
        wrote = {place: (run, digest) for run in self.runs for place, digest in run.wrote.items()}
        for place in sorted(self.files):
            if place.startswith("/") or ".." in place.split("/") or not (results / place).is_file():
                raise UserError("a file of the results is missing", where=results / place, remedy="run snakemake")
            if place in wrote and sha256_file(results / place) != wrote[place][1]:
                what = f"the file is not as {wrote[place][0].name} wrote it"
                raise UserError(what, where=results / place, remedy="run snakemake, then publish")

    @cached_property
    def stores(self) -> list[str]:
        """The places of the sealed manifests of the stores that the jobs read."""
        return sorted(place for place in self.files if place.startswith(STORES))

    def arrays(self) -> dict[str, set[str]]:
        """Return the arrays that the scored models read, by the folder of the store that holds them."""
        arrays = dict[str, set[str]]()
        for card in (place for place in self.files if is_in(place, "models") and Path(place).name == CARD):
            files = ModelFiles.open((self.results / card).parent)
            config: Any = files.model
            names = getattr(config, "image", config).arrays if config.layer is None else arrays_of_layer(config.layer)
            for store in files.stores():
                arrays.setdefault(store.parent.name, set()).update(names)
        return arrays


def check_terms(plan: Plan, config: Any) -> dict[str, dict[str, str | None]]:
    """Return licence and source of the data set and of the networks.

    Raises:
        UserError: the licence of the data set does not allow its publication, and no key of the configuration does.
    """
    name, known = read_manifest(plan.results / DATA).dataset, Terms.of(config.data)
    terms: dict[str, dict[str, str | None]] = {f"data set {name}": known.model_dump()}
    for place in plan.stores:
        stated = read_sealed(plan.results / place)["attributes"].get("terms", {}).get("backbone", {})
        terms[place.rpartition("/")[0]] = {"licence": stated.get("licence"), "source": None}
    parts = [part for part in ("references", "features", "captions") if part not in plan.without]
    is_open = (known.licence or "").startswith(_OPEN) and ";" not in (known.licence or "")
    if parts and not is_open and not config.publications.share_data:
        what = f"the licence of {name} does not say that everybody may publish {', '.join(parts)}: {known.licence}"
        remedy = f"set publications.share_data: true if you may, or add {' '.join(f'--without {one}' for one in parts)}"
        raise UserError(what, where="data.licence", remedy=remedy)
    return terms


def publish(plan: Plan, target: str, config: Any, report: Reporter, scratch: Path) -> str:
    """Publish an experiment at ``target``: a folder, an address of fsspec, or a zip on this machine.

    Args:
        scratch: an empty folder for what is written anew.

    Returns:
        The digest of the publication: that of its ``publication.json``.
    """
    terms, folder = check_terms(plan, config), None if target.endswith(".zip") else RemoteFolder(target)
    place, paths = folder.url if folder else target, dict(_write(plan, config, scratch))
    listed = publication.Publication.model_validate(
        {
            "format": "vitcapr-publication-2",
            "experiment": plan.results.resolve().name,
            "program": f"vitcapr {vitcapr.__version__}",
            "splits": plan.splits,
            "left_out": list(plan.without),
            "terms": terms,
            "files": list_files(paths),
        }
    )
    about = {publication.PAGE: scratch / publication.PAGE}
    write_text(about[publication.PAGE], _page(listed, place))
    if crate := crate_metadata(listed, plan.runs, report):
        about[publication.CRATE] = scratch / publication.CRATE
        write_json(about[publication.CRATE], crate)
    listed = listed.model_copy(update={"files": {**listed.files, **list_files(about)}})
    paths |= about
    content = push_list(folder, INDEX, listed, paths, report) if folder else _write_zip(Path(target), listed, paths)
    digest = sha256_bytes(content)
    record_copy(plan.results / SUMMARY, place, digest, report.line)
    return digest


def _write_zip(target: Path, listed: publication.Publication, paths: Mapping[str, Path]) -> bytes:
    """Write a publication without times and owners of files, and return its list."""
    content = listed.model_dump_json(indent=2).encode()
    with atomic_path(target) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, path in sorted(paths.items()):
            packed.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
        packed.writestr(zipfile.ZipInfo(INDEX), content, zipfile.ZIP_DEFLATED)
    return content


def _write(plan: Plan, config: Any, scratch: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of every file; what is cut down is written to ``scratch``."""
    data, experiment = read_manifest(plan.results / DATA), scratch / EXPERIMENT
    for place in sorted(plan.files - {DATA}):
        left_out = any(is_in(place, part) for part in plan.without)
        if not left_out or Path(place).name in (CARD, "manifest.json"):
            yield f"{EXPERIMENT}/{place}", plan.results / place
    _write_data(plan, data, experiment / "data")
    if "features" not in plan.without:
        _write_rows(plan, data, experiment)
    for run in plan.runs:
        content = read_json(run.path)
        made = {**content["made"], "user": "", "host": ""}
        write_json(experiment / run.path.relative_to(plan.results), {**content, "made": made})
    write_text(scratch / publication.CONFIGURATION, yaml.safe_dump(config.canonical(), sort_keys=False))
    yield from ((path.relative_to(scratch).as_posix(), path) for path in sorted(scratch.rglob("*.*")) if path.is_file())


def _write_data(plan: Plan, data: Manifest, folder: Path) -> None:
    """Write the data set with the captions and objects of the scored splits; other captions are blank."""
    splits = [] if "references" in plan.without else plan.splits
    write_bytes(folder / "images.parquet", (plan.results / "data/images.parquet").read_bytes())
    texts = data.captions["text"].where(data.captions["split"].isin(splits), "")
    tables = {"captions.parquet": data.captions.assign(text=texts)}
    if data.objects is not None:
        scored = data.images["image_id"][data.images["split"].isin(splits)]
        tables["objects.parquet"] = data.objects[data.objects["image_id"].isin(scored)]
    for name, table in tables.items():
        write_frame(folder / name, slices(table), SCHEMAS[name])
    files = {path.name: sha256_file(path) for path in folder.glob("*.parquet")}
    write_json(folder / "manifest.json", {**read_json(plan.results / DATA), "image_root": ".", "files": files})


def scored_rows(data: Manifest, identity: str, splits: Collection[str]) -> "np.ndarray[Any, Any]":
    """Return the rows of a store that are published, increasing."""
    table = data.image_table if identity == "image_id" else data.caption_table
    return np.flatnonzero(table.column("split").isin([*splits]).to_numpy())


def _write_rows(plan: Plan, data: Manifest, experiment: Path) -> None:
    """Write the rows of the scored splits, as they are stored, of the arrays that models read."""
    read = plan.arrays()
    for place in map(Path, plan.stores):
        sealed, names = read_sealed(plan.results / place), read.get(place.parent.name)
        rows = scored_rows(data, identity_in(sealed), plan.splits)
        with open_features(plan.results / place) as store:
            store.check_rows(store.identity, data)
            for name, layout in layouts_in(sealed).items():
                if names is None or name.removesuffix(SCALE) in names:
                    values = FeatureArray(store.path / name, layout).gather(rows)
                    write_array(experiment / place.parent / ROWS / f"{name}.npy", values)


def _page(listed: publication.Publication, place: str) -> str:
    """Return the README of a publication."""
    size = sum(file.size for file in listed.files.values()) / 1e6
    terms = [f"- {name}: {one['licence'] or 'licence not stated'}" for name, one in listed.terms.items()]
    left_out = f"; left out: {', '.join(listed.left_out)}" if listed.left_out else ""
    facts = f"{listed.program}; {len(listed.files)} files, {size:.1f} MB; split {', '.join(listed.splits)}{left_out}."
    badge = f"**verify this table**: `vitcapr verify {place}`"
    return "\n\n".join(
        [f"# {listed.experiment}", badge, f"{facts} The table is experiment/tables/scores.md.", *terms, ""]
    )
