"""Rooms: parts of the package that can be taken out. The core names none of them.

A room is a package with a module ``room``: ``vitcapr/NAME/`` or ``vitcapr/extensions/NAME/``. What else lies in it is
found by its place:

- ``room.py`` defines ``ROOM``, a :class:`Room`: what the experiment asks of the room; and classes whose keys belong to
  the configuration: ``Experiment`` for sections, ``Run`` for keys of ``run``, ``Data`` for the sections of data sets. A
  definition of a section is run as ``run`` lists it, under the name of the section; by default all are;
- each module of ``stages/`` is a stage, each module of ``commands/`` a command.

Its rules are in ``rules.smk``.
"""

import importlib
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
Hook = Callable[[Any], Iterable[T]]
_PACKAGE = Path(__file__).parent


def _nothing(_: Any) -> tuple[()]:
    return ()


@dataclass(frozen=True)
class Room:
    """Additions of a room to an experiment.

    Each attribute is a function; by default it adds nothing.

    Attributes:
        contradictions: of an :class:`~vitcapr.config.experiment.ExperimentConfig`, a sentence for each contradiction
            between a section of the room and another one.
        facts: of a configuration, what the room runs, for the head of the first page: (kind, names).
        backbones, text_encoders: of a configuration, those whose features the room reads.
        trained_backbone: of a configuration, the keys of config.json of the backbone that the room trains, with values.
        checks_claims: of a configuration, whether a rule of the room writes ``claims.json`` beside any captions.
        problems: of an experiment, a :class:`~vitcapr.errors.UserError` for everything that would end its run.
        arrays: of an experiment, (key, backbones, arrays) for everything that reads features of images.
        pairs: of a configuration, (key, number) for each number of training pairs that a key asks for.
        scores: of an experiment, the files that ``summary.csv`` joins.
        tables: of an experiment, further files that a run makes.
        page: of an experiment, the files with tables for the first page.
        notes: of an experiment, a line for everything that it names and that a run does not do.
    """

    contradictions: Hook[str] = _nothing
    facts: Hook[tuple[str, list[str]]] = _nothing
    backbones: Hook[str] = _nothing
    text_encoders: Hook[str] = _nothing
    trained_backbone: Hook[tuple[str, Any]] = _nothing
    checks_claims: Hook[bool] = _nothing
    problems: Hook[Exception] = _nothing
    arrays: Hook[tuple[str, list[str], list[str]]] = _nothing
    pairs: Hook[tuple[str, int]] = _nothing
    scores: Hook[str] = _nothing
    tables: Hook[str] = _nothing
    page: Hook[str] = _nothing
    notes: Hook[str] = _nothing


def ask(hook: str, of: Any) -> Iterator[Any]:
    """Yield the additions of every room."""
    for package in rooms():
        yield from getattr(importlib.import_module(f"{package}.room").ROOM, hook)(of)


@cache
def rooms() -> Mapping[str, Path]:
    """Return the folder of each room by the name of its package."""
    files = sorted(_PACKAGE.glob("extensions/*/room.py"))
    return {f"vitcapr.extensions.{file.parent.name}": file.parent for file in files}


@cache
def modules_of_rooms(folder: str) -> Mapping[str, str]:
    """Return the modules in a folder of every room, ``stages`` or ``commands``, without importing any.

    They are keyed by their last names.
    """
    return {
        path.stem: f"{package}.{folder}.{path.stem}"
        for package, place in rooms().items()
        for path in sorted(place.glob(f"{folder}/[!_]*.py"))
    }


def furnished(name: str, section: type[T]) -> type[T]:
    """Return a section of the configuration with the keys that rooms add to it."""
    added = _sections(name)
    if not added:
        return section
    values = {"__module__": section.__module__, "__doc__": section.__doc__}
    return types.new_class(section.__name__, (*reversed(added), section), exec_body=lambda body: body.update(values))


def sections_to_run() -> list[str]:
    """Return the sections of rooms whose definitions ``run`` lists under the name of the section."""
    keys = [key for section in _sections("Run") for key in section.model_fields]
    return [key for section in _sections("Experiment") for key in section.model_fields if key in keys]


def listed(config: Any, section: str) -> dict[str, Any]:
    """Return the definitions of a section that ``run`` lists, by name."""
    return {name: getattr(config, section)[name] for name in getattr(config.run, section)}


def _sections(name: str) -> list[Any]:
    """Return the classes of this name that rooms define."""
    modules = [vars(importlib.import_module(f"{package}.room")) for package in rooms()]
    return [module[name] for module in modules if name in module]
