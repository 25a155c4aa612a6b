"""The one door: extensions, and the parts that they and the package hold.

An extension is a folder. It lies in one of three places, and is read in the same way in all of them:

- ``vitcapr/extensions/NAME/``, in the package;
- ``plugins/``, in the working folder of a study;
- a package that an installed distribution names as an entry point of the group ``vitcapr.extensions``.

A part is a module that defines one of :data:`KINDS`, such as ``METRIC``, and lies in the folder of its kind, such as
``metrics/``. The name of the module is its name in the configuration. In ``plugins/`` a part may lie at the top, and an
entry point may name the module of one part, whose name it gives. docs/extend.md lists what else an extension may hold.
"""

import ast
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, TypeVar, get_args

from vitcapr.errors import UserError

T = TypeVar("T")
FOLDER, GROUP, LOCAL = "plugins", "vitcapr.extensions", "vitcapr_plugins"
"""The folder of a study's extension, the group of entry points, and the package that the folder is imported as."""
_PACKAGE = Path(__file__).parent
_LONGEST_NAME = 255
"""Bytes of a file's name, at most."""
_INSTALLED = {"site-packages", "dist-packages"}


@dataclass(frozen=True)
class Kind:
    """A kind of part.

    Attributes:
        folder: folder of an extension that holds parts of this kind.
        keys: keys of a stage's settings whose values name parts, each as a path; ``*`` is any key or item.
        packages: packages of the core with parts of this kind, or with modules that belong to them.
    """

    folder: str
    keys: tuple[str, ...]
    packages: tuple[str, ...] = ()


_OBJECTIVE = "training.phases.*.objective"
KINDS = {
    "METRIC": Kind("metrics", ("metrics.caption",), ("vitcapr.metrics.captions",)),
    "CAPTIONER": Kind("captioners", ("captioner.architecture",), ("vitcapr.models.architectures",)),
    "ENCODER": Kind("encoders", ("backbone.kind",)),
    "HEAD": Kind("heads", ("retriever.image.head", "retriever.text.head"), ("vitcapr.training.heads",)),
    "TOWER": Kind("towers", ("retriever.text",)),
    "LOSS": Kind("losses", (f"*.{_OBJECTIVE}", f"*.*.{_OBJECTIVE}"), ("vitcapr.training.losses",)),
    "RERANKER": Kind("rerankers", ("scorer",), ("vitcapr.retrieval.rerankers",)),
}
"""By the name that the module of a part defines."""


@dataclass(frozen=True)
class Part:
    """A part of an extension; ``kind`` is a key of :data:`KINDS`."""

    name: str
    kind: str
    module: str
    path: Path

    @property
    def is_packaged(self) -> bool:
        """Whether it comes with vitcapr."""
        return self.module.startswith("vitcapr.")

    def load(self, attribute: str | None = None) -> Any:
        """Import the module, and return ``attribute`` of it, by default the part.

        Raises:
            UserError: the module names a file of the study, cannot be imported, or does not define ``attribute``.
        """
        try:
            check_reads(self.path, f"the {self.kind.lower()} '{self.name}'")
            return getattr(importlib.import_module(self.module), attribute or self.kind)
        except UserError:
            raise
        except Exception as error:
            what = f"the {self.kind.lower()} '{self.name}' cannot be used: {type(error).__name__}: {error}"
            raise UserError(what, where=self.path, remedy="correct the file") from error


@dataclass(frozen=True)
class Hooks:
    """Answers of an extension to questions of the experiment; ``settings.py`` defines them as ``HOOKS``.

    Attributes:
        contradictions: of an :class:`~vitcapr.config.experiment.ExperimentConfig`, a sentence for each contradiction
            between a section of the extension and another one.
        facts: of a configuration, what the extension runs, for the head of the first page: (kind, names).
        trained_backbone: of a configuration, the keys of config.json of the backbone that it trains, with values.
        checks_claims: of a configuration, whether a rule of it writes ``claims.json`` beside any captions.
        checkpoints: of a configuration, (key, source, revision, check of its folder) of each one that the extension
            starts from.
        arrays: of a configuration, (key, backbones, arrays) for everything that reads features of images.
        pairs: of a configuration, (key, number) for each number of training pairs that a key asks for.
        scores: of an experiment, the files that ``summary.csv`` joins.
        figures: of an experiment, the patterns of each figure that a run draws, and the values of their wildcards.
        tables: of an experiment, further files that a run makes.
        page: of an experiment, the files with tables for the first page.
        notes: of an experiment, a line for everything that it names and that a run does not do.
        table_comments: of the folder of an experiment's results, comments of its LaTeX tables.
    """

    contradictions: Callable[[Any], Iterable[str]] = lambda _: ()
    facts: Callable[[Any], Iterable[tuple[str, list[str]]]] = lambda _: ()
    trained_backbone: Callable[[Any], Iterable[tuple[str, Any]]] = lambda _: ()
    checks_claims: Callable[[Any], Iterable[bool]] = lambda _: ()
    checkpoints: Callable[[Any], Iterable[tuple[str, str, str, Callable[[Path], object]]]] = lambda _: ()
    arrays: Callable[[Any], Iterable[tuple[str, list[str], list[str]]]] = lambda _: ()
    pairs: Callable[[Any], Iterable[tuple[str, int]]] = lambda _: ()
    scores: Callable[[Any], Iterable[str]] = lambda _: ()
    figures: Callable[[Any], Iterable[tuple[str | list[str], dict[str, str]]]] = lambda _: ()
    tables: Callable[[Any], Iterable[str]] = lambda _: ()
    page: Callable[[Any], Iterable[str]] = lambda _: ()
    notes: Callable[[Any], Iterable[str]] = lambda _: ()
    table_comments: Callable[[Any], Iterable[str]] = lambda _: ()


def extensions() -> Mapping[str, Path]:
    """Return the folder of each extension, by the package that its modules are imported as."""
    return _found(Path.cwd() / FOLDER)[0]


def all_parts() -> tuple[Part, ...]:
    """Return the parts of all extensions. None is imported."""
    return _found(Path.cwd() / FOLDER)[1]


def parts(kind: str) -> dict[str, Part]:
    """Return the parts of a kind that extensions hold, by name."""
    return {part.name: part for part in all_parts() if part.kind == kind}


def part_names(kind: str) -> list[str]:
    """Return the names of all parts of a kind, of the core and of extensions."""
    core = [name for package in KINDS[kind].packages[:1] for name in modules_in(package)]
    return sorted({*core, *parts(kind)})


def load_part(kind: str, name: str) -> Any:
    """Return the part of this name.

    Raises:
        UserError: there is none, or its extension cannot be imported.
    """
    if (part := parts(kind).get(name)) is not None:
        return part.load()
    check_part(kind, name)
    return getattr(importlib.import_module(f"{KINDS[kind].packages[0]}.{name}"), kind)


def beside_part(kind: str, name: str, attribute: str) -> Any:
    """Return what the module of an extension's part defines beside it; None if it does not."""
    part = parts(kind).get(name)
    return part and getattr(importlib.import_module(part.module), attribute, None)


def check_part(kind: str, name: str, where: object = None) -> None:
    """Check that there is a part of this name, without importing it.

    Args:
        where: the file that names it.

    Raises:
        UserError: there is none.
    """
    if name not in part_names(kind):
        place = f"{FOLDER}/{KINDS[kind].folder}/{name}.py"
        remedy = f"copy {place} of its study here, run in the folder of the study, or install the extension"
        raise UserError(f"no {kind.lower()} is called '{name}'", where=where, remedy=remedy)


def part_modules(settings: Mapping[str, Any]) -> list[str]:
    """Return the modules of the parts that the plain settings of a stage name, of the core and of extensions."""
    modules = []
    for kind, described in KINDS.items():
        names = {name for key in described.keys for name in _named(settings, key.split("."))}
        modules += [f"{core}.{name}" for core in described.packages for name in modules_in(core) if name in names]
        modules += [part.module for part in parts(kind).values() if part.name in names]
    return modules


def extension_parts(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the file in the study or the module of each part that settings name and vitcapr lacks, by ``loss dcl``."""
    named = {part.module: part for part in all_parts() if not part.is_packaged}
    found = [named[module] for module in part_modules(settings) if module in named]
    here = Path.cwd()
    return {
        f"{part.kind.lower()} {part.name}": part.path.relative_to(here).as_posix()
        if part.module.startswith(LOCAL)
        else part.module
        for part in found
    }


def _named(values: Any, key: list[str]) -> Iterator[str]:
    """Yield the names at a key of plain settings; ``kind`` holds the name of a part that has settings of its own."""
    if isinstance(values, str) and not key:
        yield values
    elif isinstance(values, list) and (not key or key[0] == "*"):
        for each in values:
            yield from _named(each, key[1:])
    elif isinstance(values, Mapping) and not key:
        yield from _named(values.get("kind"), [])
    elif isinstance(values, Mapping):
        for name in values if key[0] == "*" else [key[0]]:
            yield from _named(values.get(name), key[1:])


@cache
def modules_in(package: str) -> tuple[str, ...]:
    """Return the names of a package's modules, without importing them."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    modules = pkgutil.iter_modules(spec.submodule_search_locations)
    return tuple(module.name for module in modules if not module.name.startswith("_"))


def modules_of_extensions(*folders: str) -> dict[str, tuple[str, Path]]:
    """Return the modules in these folders of every extension, and their files, by their last names."""
    return {
        path.stem: (f"{package}.{name}.{path.stem}", path)
        for package, folder in extensions().items()
        for name in folders
        for path in sorted(folder.glob(f"{name}/[!_]*.py"))
    }


def files_of_extensions(name: str) -> list[Path]:
    """Return the file of this name of every extension that has it, such as ``rules.smk``."""
    return [folder / name for folder in extensions().values() if (folder / name).is_file()]


def ask(hook: str, subject: Any) -> Iterator[Any]:
    """Yield the answers of every extension to a question of the experiment: a name of :class:`Hooks`."""
    for hooks in _from_settings("HOOKS"):
        yield from getattr(hooks, hook)(subject)


def extend_section(name: str, section: type[T]) -> type[T]:
    """Return a section of the configuration with the keys that the classes ``name`` of extensions add to it."""
    if not (added := _from_settings(name)):
        return section
    values = {"__module__": section.__module__, "__doc__": section.__doc__}
    return types.new_class(section.__name__, (*reversed(added), section), exec_body=lambda body: body.update(values))


def sections_to_run(kind: type = object) -> list[str]:
    """Return the sections of extensions whose definitions, of a class, ``run`` lists under the name of the section."""
    keys = [key for section in _from_settings("Run") for key in section.model_fields]
    fields = [field for section in _from_settings("Experiment") for field in section.model_fields.items()]
    entries = {key: get_args(field.annotation)[1:] for key, field in fields if key in keys}  # Of dict[Name, X]: (X,).
    return [key for key, kinds in entries.items() if any(issubclass(each, kind) for each in kinds)]


def run_entries(config: Any, section: str) -> dict[str, Any]:
    """Return the definitions of a section that ``run`` lists, by name."""
    return {name: getattr(config, section)[name] for name in getattr(config.run, section)}


def _from_settings(name: str) -> list[Any]:
    """Return the objects of this name in the modules ``settings`` of extensions.

    Raises:
        UserError: such a module cannot be imported.
    """
    modules = []
    for package, folder in extensions().items():
        file = folder / "settings.py"
        if not file.is_file():
            continue
        try:
            modules.append(vars(importlib.import_module(f"{package}.settings")))
        except ImportError as error:
            raise UserError(f"the extension's settings cannot be read: {error}", where=file) from error
    return [module[name] for module in modules if name in module]


def check_reads(path: Path, what: str) -> None:
    """Check that a module of an extension names no file of the study, or of its folder, that does not count.

    Data with the name of the module count: ``NAME.txt`` beside ``NAME.py``, and the files in the folder ``NAME``.

    Raises:
        UserError: the module names such a file.
    """
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    passed = {id(each) for node in nodes if isinstance(node, ast.Call) for each in node.args}
    for node in nodes:
        text = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(text, str) or len(text.encode("utf-8", "replace")) > _LONGEST_NAME:
            continue
        # A name that is joined to a folder, as in folder / "captions.csv", is no path from the working folder.
        for place in (*([Path()] if id(node) in passed else []), path.parent, path.parent.parent):
            file = place / text
            counts = file.suffix == ".py" or file.stem == path.stem or file.is_relative_to(path.with_suffix(""))
            if file.is_file() and not counts:
                remedy = f"name it '{path.stem}{file.suffix}' and put it beside the module, or name it in a key"
                raise UserError(f"{what} reads '{text}', of which no edit is noticed", where=path, remedy=remedy)


def is_installed(path: Path) -> bool:
    """Whether a file belongs to a distribution. Others, of editable installations as well, are edited by a person."""
    return not _INSTALLED.isdisjoint(path.parts)


@cache
def _found(study: Path) -> tuple[dict[str, Path], tuple[Part, ...]]:
    """Return the extensions and their parts, of a study with this folder of plugins."""
    local = sys.modules.setdefault(LOCAL, types.ModuleType(LOCAL))
    local.__spec__ = ModuleSpec(LOCAL, None, is_package=True)
    local.__path__ = local.__spec__.submodule_search_locations = [str(study)]
    own = sorted(folder for folder in _PACKAGE.glob("extensions/[!_]*/") if any(folder.glob("*.py")))
    folders = {f"vitcapr.extensions.{folder.name}": folder for folder in own}
    folders |= {LOCAL: study} if study.is_dir() else {}
    single = [(path.stem, f"{LOCAL}.{path.stem}", path) for path in sorted(study.glob("[!_.]*.py"))]
    for point in importlib.metadata.entry_points(group=GROUP):
        spec = importlib.util.find_spec(point.value)
        if spec is None or spec.origin is None:
            remedy = "correct the entry point"
            raise UserError(f"extension '{point.name}': no such module", where=point.value, remedy=remedy)
        if spec.submodule_search_locations:
            folders[point.value] = Path(spec.origin).parent
        else:
            single.append((point.name, point.value, Path(spec.origin)))
    found = [Part(name, kind, module, path) for name, module, path in single if (kind := _kind(path))]
    for package, folder in folders.items():
        for kind, described in KINDS.items():
            paths = sorted(folder.glob(f"{described.folder}/[!_.]*.py"))
            found += [Part(path.stem, kind, f"{package}.{described.folder}.{path.stem}", path) for path in paths]
    first: dict[tuple[str, str], Path] = {}
    for part in found:
        core = [name for package in KINDS[part.kind].packages[:1] for name in modules_in(package)]
        other = first.setdefault((part.kind, part.name), part.path)
        if other != part.path or part.name in core:
            what = f"two parts are the {part.kind.lower()} '{part.name}'"
            where = f"{part.path} and {'the package' if part.name in core else other}"
            raise UserError(what, where=where, remedy="rename one of them")
    return folders, tuple(found)


def _kind(path: Path) -> str | None:
    """Return the kind that a file assigns or defines at its top."""
    text = path.read_text(encoding="utf-8", errors="replace")
    match = re.search(rf"^(?:class |def )?({'|'.join(KINDS)})\s*(?:[:(]|=[^=])", text, re.MULTILINE)
    return match[1] if match else None
