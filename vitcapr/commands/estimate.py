"""Size, files and models of an experiment before it runs, where they come from, and what Slurm would refuse."""

import getpass
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from vitcapr.config.base import ADOPTED, find_backbone, find_data
from vitcapr.errors import UserError
from vitcapr.experiment.checks import checkpoint_sources
from vitcapr.experiment.experiment import Experiment
from vitcapr.experiment.paths import can_only_be_a_folder, find_store
from vitcapr.formats.audit_files import find_audit
from vitcapr.formats.store_manifest import IDENTITIES, read_sealed, store_group
from vitcapr.formats.tables import Table, row
from vitcapr.pipeline.slurm import ask
from vitcapr.progress import format_bytes, print_lines

BYTES = {"int8": 1, "float16": 2, "float32": 4}


def splits_and_languages(experiment: Experiment) -> tuple[Counter[str], Collection[str] | None, int | None]:
    """Return the images of each split, the caption languages, and the number of captions to train on.

    The number is None if it is not known; pairs, which are sampled when they are read, have no images yet.
    """
    data = experiment.config.data
    section = getattr(data, data.dataset)
    if (counts := section.image_counts()) is not None:
        return counts, section.languages, None
    if data.dataset == "pairs":
        return Counter(), section.languages, None
    from vitcapr.data.collect import Checks, listed_sizes
    from vitcapr.data.readers import leave_out, list_data_set

    with list_data_set(data.dataset, **section.keys()) as (source, listing):
        for note in listing.notes:
            print_lines(note)
        if data.leave_out:
            listing = leave_out(listing, find_data(data.leave_out), data.leave_out_above)
        languages = listing.captions["language"].fillna("en")
        trained = listing.captions["image_row"].isin(listing.images.index[listing.images["split"] == "train"])
        read = trained & (listing.captions["text"] != "") & (languages == experiment.config.text.language)
        sizes, left_out = listed_sizes(listing, source.root, data.to(Checks), section.limit)
        print_lines(*([left_out] if left_out else []))
        return sizes, sorted(languages.unique()), int(read.sum())


def backbone_lines(experiment: Experiment, images: int) -> Iterator[str]:
    """Yield a line for each backbone: where it is, and how many bytes its features take."""
    config = experiment.config
    for name in experiment.models.backbones:
        backbone = config.backbones[name]
        if backbone.is_adopted:
            yield f"backbone {name}: {describe_store(experiment, backbone.source)}"
            continue
        if experiment.models.is_trained(name):
            place = f"trained here on the {images:,} images"
        else:
            folder = find_backbone(backbone.source)
            elsewhere = "is not there" if can_only_be_a_folder(backbone.source) else "of the hub, or in its cache"
            place = str(folder) if folder.is_dir() else f"{backbone.source} {elsewhere}"
        shapes = experiment.features.stored[name].shapes.values()
        size = images * sum(map(prod, shapes)) * BYTES[backbone.store_dtype]
        known = f"{format_bytes(size)} of features" if images and all(shapes) else "size of the features not known yet"
        yield f"backbone {name}: {place}; {known}"


def text_encoder_lines(experiment: Experiment) -> Iterator[str]:
    """Yield a line for each text encoder whose features are a store."""
    for name in experiment.models.adopted_texts:
        yield f"text encoder {name}: {describe_store(experiment, experiment.config.text_encoders[name].source)}"


def describe_store(experiment: Experiment, source: str) -> str:
    """Describe a store that is a source: its rows, its arrays with their widths, and who made it."""
    path = find_store(source.removeprefix(ADOPTED), experiment.results)
    if not path.is_file():
        return f"the feature store {source} is not there ({path})"
    sealed = read_sealed(path)
    made, identity = sealed["attributes"], next(name for name in IDENTITIES if name in sealed)
    arrays = [f"{name} {' x '.join(map(str, array['shape'][1:]))}" for name, array in sealed["arrays"].items()]
    grid = f", grid {sealed['grid'][0]} x {sealed['grid'][1]}" if "grid" in sealed else ""
    by = "imported as" if "imported" in made else f"weights {(made.get('weights_sha256') or 'unknown')[:16]}, of"
    rows = f"{sealed[identity]['shape'][0]} {identity.removesuffix('_id')}s"
    stated = find_audit(store_group(path, sealed).parent, sealed)
    audited = f"; audited: {stated.summary()}" if stated else ""
    made_by = f"{by} {made.get('backbone', 'unknown')}"
    return f"the feature store {source}: {rows}, {', '.join(arrays)}{grid}; {made_by}{audited}"


class Obtainable(BaseModel):
    """A file, a folder or a model, by the names under which experiments ask for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    names: tuple[str, ...]
    what: str
    source: str
    licence: str
    size: str


def read_obtainable() -> list[Obtainable]:
    text = Path(__file__).with_name("downloads.yaml").read_text(encoding="utf-8")
    return TypeAdapter(list[Obtainable]).validate_python(yaml.safe_load(text))


def missing_lines(experiment: Experiment) -> list[str]:
    """Return a line for every file and every checkpoint that is not on this machine, with its source."""
    known = {name: one for one in read_obtainable() for name in one.names}
    missing = {key: path for key, path in experiment.user_files.items() if not path.exists()}
    lines = [f"missing: {key}: {path}{_whence(known.get(str(path)))}" for key, path in missing.items()]
    for source in checkpoint_sources(experiment):
        if not find_backbone(source).is_dir():
            if can_only_be_a_folder(source):
                lines.append(f"missing: {source}: no such folder")
            else:
                where = "the hub or its cache will be asked for" if "/" in source else "not under VITCAPR_BACKBONES:"
                lines.append(f"{where} {source}{_whence(known.get(source))}")
    return lines


def obtainable_table(needed: Mapping[str, Sequence[str]]) -> Table:
    """Return the table of files that can be obtained; ``needed`` has the names that each experiment asks for."""
    return Table(
        "",
        ("name in the experiments", "what it is", "where it comes from", "licence", "size", "needed by"),
        tuple(
            row(
                ", ".join(f"`{name}`" for name in one.names),
                one.what,
                one.source,
                one.licence,
                one.size,
                ", ".join(f"`{by}`" for by, names in needed.items() if set(names) & set(one.names)),
            )
            for one in read_obtainable()
        ),
        align="llllll",
        name="files",
    )


def _whence(one: Obtainable | None) -> str:
    return "" if one is None or one.source == "yours" else f" ({one.what}, {one.size}, {one.licence}): {one.source}"


def refusals(profile: Mapping[str, Any], needs: Mapping[str, Mapping[str, Any]], where: Path) -> Iterator[UserError]:
    """Yield what Slurm would refuse of the jobs of a run: a partition, an account, or a request.

    Args:
        profile: the content of the file ``where``.
        needs: ``threads`` and the resources of a job of each rule; ``gpu`` of those rules that can use one.
    """
    default, sites, cores = (profile.get(name) or {} for name in ("default-resources", "set-resources", "set-threads"))
    partitions = (ask("sinfo", "--noheader", "--format=%R") or "").split()
    show = ("sacctmgr", "--noheader", "--parsable2", "show", "associations")
    accounts = (ask(*show, f"user={getpass.getuser()}", "format=account") or "").split()
    asked = set[tuple[str, ...]]()
    for rule, need in needs.items():
        own = sites.get(rule) or {}
        site = {**default, **({} if need.get("gpu") == 0 else own)}
        names = (
            ("partition", site.get("slurm_partition"), partitions),
            ("account", site.get("slurm_account"), accounts),
        )
        unknown = next(
            ((kind, name, known) for kind, name, known in names if name and known and name not in known), None
        )
        words = _request(site, {**need, **own, "threads": cores.get(rule, need["threads"])})
        question = tuple(words) if unknown is None else unknown[:2]
        if question in asked:
            continue
        asked.add(question)
        if unknown is not None:
            kind, name, known = unknown
            remedy = f"write one of {', '.join(known)}"
            yield UserError(
                f"rule {rule} asks for the {kind} '{name}', which Slurm does not have", where=where, remedy=remedy
            )
        elif (done := subprocess.run(words, capture_output=True, text=True, check=False)).returncode:
            remedy = "change what the profile asks for"
            yield UserError(f"Slurm would refuse rule {rule}: {done.stderr.strip()}", where=where, remedy=remedy)


def _request(site: Mapping[str, Any], need: Mapping[str, Any]) -> list[str]:
    """Return the command that asks Slurm whether it would take a job."""
    gpus, model = site.get("gpu", need.get("gpu", 0)), site.get("gpu_model")
    options = {
        "partition": site.get("slurm_partition"),
        "account": site.get("slurm_account"),
        "qos": site.get("qos"),
        "nodes": site.get("nodes"),
        "cpus-per-task": need["threads"],
        "mem": need["mem_mb"],
        "time": need["runtime"],
        "gres": site.get("gres"),
        "gpus": f"{model}:{gpus}" if gpus and model else gpus or None,
    }
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    return ["sbatch", "--test-only", *given, "--wrap=true"]
