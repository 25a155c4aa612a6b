"""Check a configuration, show it in full, or print its schema."""

import ast
import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from vitcapr.commands.estimate import (
    backbone_lines,
    missing_lines,
    obtainable_table,
    refusals,
    splits_and_languages,
    text_encoder_lines,
)
from vitcapr.commands.forecast import forecast, run_trials
from vitcapr.commands.main import Configfiles, typer_group
from vitcapr.commands.status import planned_dag
from vitcapr.config.base import Section, conditions
from vitcapr.config.contradictions import missing_languages
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.reading import read_yaml
from vitcapr.errors import UserError, as_user_error
from vitcapr.experiment.checks import checkpoint_sources, empty_splits, endless_warm_ups, lacks, too_many_pairs
from vitcapr.experiment.experiment import Experiment, load_experiment, names_of, read_config
from vitcapr.experiment.paths import gpu_exists
from vitcapr.formats.tables import Table, row, to_markdown
from vitcapr.loader import KINDS, part_names
from vitcapr.metrics.bootstrap import few_images
from vitcapr.pipeline.slurm import ask
from vitcapr.progress import print_lines

SPLITS = ("train", "validation", "test", "none")

app = typer_group(__doc__)


@app.command()
def check(
    configfile: Configfiles = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="First run the experiment on a few hundred images, for the forecast.")
    ] = False,
    profile: Annotated[str | None, typer.Option(help="A profile, such as slurm: ask Slurm about its jobs.")] = None,
) -> None:
    """Check a configuration: its keys, its values, its files and models; count images, bytes, minutes and memory."""
    files = configfile or []
    where = names_of(files)
    print_lines(*missing_lines(Experiment(read_config(*files))))
    experiment = load_experiment(*files)
    if problems := list(lacks(experiment)):
        raise as_user_error(problems)
    if experiment.config.device == "cuda" and profile is None and not gpu_exists():
        print_lines("no GPU is on this machine (device: cuda): only jobs of --profile slurm find one")
    sizes, languages, captions = splits_and_languages(experiment)
    errors = [UserError(what, where=where) for what in missing_languages(experiment.config, languages)]
    errors += () if profile is None else _refused_jobs(profile, files)
    errors += too_many_pairs(experiment, captions) if captions else ()
    errors += () if experiment.config.data.dataset == "pairs" else empty_splits(experiment, sizes)
    if errors:
        raise as_user_error(errors)
    listed = ", ".join(f"{sizes[split]:,} {split}" for split in SPLITS if sizes[split])
    size = f"{sizes.total():,} images: {listed}" if sizes else "sampled when it is read"
    encoders = [*backbone_lines(experiment, sizes.total()), *text_encoder_lines(experiment)]
    print_lines(f"data: {experiment.config.data.dataset}, {size}", *encoders, experiment.contents)
    scored = [split for split in experiment.models.splits if sizes[split]]
    print_lines(*(f"{split}: {warning}" for split in scored if (warning := few_images(sizes[split]))))
    if measure:
        run_trials(experiment, sizes.total(), files)
    print_lines(*forecast(Path(experiment.root), sizes, files))
    print_lines(*endless_warm_ups(experiment, sizes["train"]), f"{where}: no mistakes")


def _refused_jobs(profile: str, configfiles: list[Path]) -> Iterator[UserError]:
    """Yield what Slurm would refuse of a run of these files with a profile."""
    places = [Path(profile), Path(profile) / "profile.yaml", Path("profiles") / profile / "profile.yaml"]
    file = next((place for place in places if place.is_file()), None)
    if file is None:
        raise UserError(f"no profile '{profile}'", where="--profile", remedy="name its folder or its file")
    if ask("sinfo", "--version") is None:
        print_lines(f"{file}: Slurm is not on this machine, so partitions and accounts are not checked")
        return
    with planned_dag(configfiles) as dag:
        needs = {
            job.rule.name: {**dict(job.resources.items()), "threads": job.threads} for job in dag.jobs if job.output
        }
    yield from refusals(read_yaml(file), needs, file)


@app.command()
def show(configfile: Configfiles = None) -> None:
    """Print the configuration in full, every default filled in, as YAML."""
    yaml.safe_dump(load_experiment(*(configfile or [])).config.canonical(), sys.stdout, sort_keys=False)


@app.command()
def schema() -> None:
    """Print the JSON schema of a configuration, for editors and for the catalogue of workflows."""
    yaml.safe_dump(_schema(), sys.stdout, sort_keys=False, allow_unicode=True, width=120)


@app.command()
def parameters() -> None:
    """Print every key with its type, default and meaning, as Markdown (config/README.md)."""
    content = _schema()
    parts = [Path(__file__).with_suffix(".md").read_text(encoding="utf-8")]
    for place, section in _sections(content, content["$defs"], ""):
        title = f"## {place}" if place else "## Top level"
        description = "\n\n" + section["description"] if section.get("description") else ""
        parts.append(f"{title}{description}\n\n{to_markdown(_table(section, content['$defs']))}")
    rows = [
        row(f"`{kind.folder}/NAME.py`", f"`{name}`", ", ".join(f"`{part}`" for part in part_names(name)))
        for name, kind in KINDS.items()
    ]
    table = Table("", ("file of an extension", "it defines", "NAME: those that are there"), tuple(rows), align="lll")
    parts.append(f"## Parts of extensions\n\n{to_markdown(table)}")
    print("\n".join(parts).replace("``", "`"), end="")


@app.command()
def files() -> None:
    """Print which files and models the experiments need, where they come from, their licence and their size."""
    needed = {}
    for path in sorted(Path("experiments").glob("*.yaml")):
        experiment = Experiment(read_config(path))
        needed[path.stem] = [*map(str, experiment.user_files.values()), *checkpoint_sources(experiment)]
    print(to_markdown(obtainable_table(needed)), end="")


def _schema() -> dict[str, Any]:
    content: dict[str, Any] = ExperimentConfig.model_json_schema()
    _allow_without_choice(content)
    for section in _subclasses(Section):
        # Pydantic names sections that share a name, such as the Config of two captioners, by their modules as well.
        names = (section.__name__, f"{section.__module__}.{section.__name__}".replace(".", "__"))
        known = next((content["$defs"][name] for name in names if name in content["$defs"]), None)
        place = content if section is ExperimentConfig else known
        if place is not None:
            needs = {key: f" Only with {' and '.join(map(str, marks))}." for key, marks in conditions(section).items()}
            for key, text in described(section).items():
                place["properties"][key]["description"] = text + needs.get(key, "")
    return content


def described(section: type[Section]) -> dict[str, str]:
    """Return the docstring of each field of the section, inherited fields included, by key.

    Pydantic can read them when a class is created, but this takes 0.2 s in every command. Only the schema needs them.
    """
    texts: dict[str, str] = {}
    for ancestor in reversed(section.__mro__):
        if issubclass(ancestor, Section):
            texts |= _field_docstrings(ancestor.__module__).get(ancestor.__name__, {})
    return {key: text for key, text in texts.items() if key in section.model_fields}


@cache
def _field_docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of the fields of each class of a module, by class and key."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_strings_under(node)) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _strings_under(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for key, text in zip(node.body, node.body[1:], strict=False):
        match key, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, inspect.cleandoc(said)


def _allow_without_choice(schema: Any) -> None:
    """Unions become ``anyOf``: without the key that chooses, a section may fit several of ``oneOf``."""
    if isinstance(schema, dict) and "oneOf" in schema:
        schema["anyOf"] = schema.pop("oneOf")
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _allow_without_choice(part)


def _subclasses(section: type[Section]) -> set[type[Section]]:
    return {section}.union(*map(_subclasses, section.__subclasses__()))


def _sections(
    section: Mapping[str, Any], known: Mapping[str, Any], place: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every section below ``section``, itself first, with the path of its key.

    Of a union, the keys that all sections have come first, then those of each choice.
    """
    yield place, section
    for key, field in section["properties"].items():
        references = {tuple(names): (path, by) for path, names, by in _references(field, f"{place}.{key}".strip("."))}
        for names, (path, chosen_by) in references.items():
            choices = [known[name] for name in names]
            if chosen_by is None:
                yield from _sections(choices[0], known, path)
                continue
            shared = dict(choices[0]["properties"])
            for choice in choices[1:]:
                shared = {key: value for key, value in shared.items() if choice["properties"].get(key) == value}
            values = [choice["properties"][chosen_by] for choice in choices]
            listed = [value for each in values for value in each.get("enum", [each.get("const")])]
            names_it = {**values[0], "enum": listed}
            yield from _sections({**choices[0], "properties": {chosen_by: names_it, **shared}}, known, path)
            for value, choice in zip(values, choices, strict=True):
                own = {key: each for key, each in choice["properties"].items() if key not in {chosen_by, *shared}}
                if own:
                    title = f"{path} with {chosen_by} {' or '.join(value.get('enum', [value.get('const')]))}"
                    yield from _sections({"properties": own}, known, title)


def _references(field: Mapping[str, Any], place: str) -> Iterator[tuple[str, list[str], str | None]]:
    """Yield the sections that a field holds: the path of each, and its name among the definitions.

    For a union, all names and the key that chooses.
    """
    if "discriminator" in field:
        yield place, [_name(choice) for choice in field["anyOf"]], field["discriminator"]["propertyName"]
        return
    if "$ref" in field:
        yield place, [_name(field)], None
    for choice in field.get("anyOf", []):
        yield from _references(choice, place)
    if isinstance(field.get("additionalProperties"), dict):
        yield from _references(field["additionalProperties"], f"{place}.NAME")
    if isinstance(field.get("items"), dict):
        yield from _references(field["items"], f"{place}[]")


def _name(reference: Mapping[str, Any]) -> str:
    return str(reference["$ref"].rpartition("/")[2])


def _table(section: Mapping[str, Any], known: Mapping[str, Any]) -> Table:
    required = section.get("required", [])
    rows = []
    for key, field in section["properties"].items():
        below: list[Mapping[str, Any]] = [known[name] for _, names, _ in _references(field, key) for name in names]
        default = "" if key in required or below else f"`{json.dumps(field.get('default'), ensure_ascii=False)}`"
        meaning = next((each["description"] for each in (field, *below) if "description" in each), "")
        rows.append(row(f"`{key}`", _type(field, known), default, " ".join(meaning.split())))
    return Table("", ("key", "type", "default", "meaning"), tuple(rows), align="llll")


def _type(field: Mapping[str, Any], known: Mapping[str, Any]) -> str:
    """Return the type of a value, in words."""
    if "$ref" in field:
        target = known[_name(field)]
        return "section" if "properties" in target else _type(target, known)
    if "enum" in field or "const" in field:
        return ", ".join(f"`{value}`" for value in field.get("enum", [field.get("const")]))
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(choice, known) for choice in field["anyOf"]))
    kind = field.get("type", "any value")
    if kind == "array":
        return f"list of {_type(field.get('items', {}), known)}"
    if kind == "object":
        inner = field.get("additionalProperties")
        return f"{_type(inner, known)} by name" if isinstance(inner, dict) else "section"
    limits = [f"{sign} {field[key]}" for key, sign in _LIMITS.items() if key in field]
    return " ".join([_KINDS.get(kind, kind), ", ".join(limits)]).strip()


_KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
_LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
