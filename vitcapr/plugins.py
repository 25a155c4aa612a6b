"""Metrics, captioners and backbone readers by name: components of the package, and plugins.

A component is a module that defines one of :data:`KINDS`. The name of the module is its name in the configuration. A
plugin is a component in a Python file of the folder ``plugins`` of the working folder, or in a module that an installed
distribution names as an entry point of the group ``vitcapr.plugins``; then the entry point gives the name. Files of the
folder that define none of the kinds are not run, unless a plugin imports them.
"""

import importlib
import importlib.metadata
import importlib.util
import os
import pkgutil
import re
import sys
import types
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError

FOLDER, GROUP = "plugins", "vitcapr.plugins"
LOCAL = "vitcapr_plugins"
"""The package that the files in ``plugins`` are imported as, so that they can import one another."""
_INSTALLED = {"site-packages", "dist-packages"}


@dataclass(frozen=True)
class Kind:
    """A kind of component.

    Attributes:
        section, key: of a stage's settings; the value names components.
        packages: the packages with components of this kind, or with modules that belong to them.
    """

    section: str
    key: str
    packages: tuple[str, ...] = ()


KINDS = {
    "METRIC": Kind("metrics", "caption", ("vitcapr.metrics.captions",)),
    "CAPTIONER": Kind("captioner", "architecture", ("vitcapr.models.architectures", "vitcapr.encoders.networks")),
    "ENCODER": Kind("backbone", "kind"),
}
"""By the name that the module of a component defines."""


@dataclass(frozen=True)
class Plugin:
    """A plugin; ``kind`` is a key of :data:`KINDS`."""

    name: str
    kind: str
    module: str
    path: Path

    def load(self, attribute: str | None = None) -> Any:
        """Import the plugin and return its component.

        Raises:
            UserError: it cannot be imported, or does not define ``attribute``.
        """
        try:
            return getattr(importlib.import_module(self.module), attribute or self.kind)
        except Exception as error:
            what = f"the plugin '{self.name}' cannot be used: {type(error).__name__}: {error}"
            raise UserError(what, where=self.path, remedy="correct the file") from error


def modules_in(package: str) -> list[str]:
    """Return the names of a package's modules, without importing them."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    return [module.name for module in pkgutil.iter_modules(spec.submodule_search_locations)]


def plugins(kind: str) -> dict[str, Plugin]:
    """Return the plugins of a kind, by name, without importing them.

    Raises:
        UserError: two plugins have one name.
    """
    return {plugin.name: plugin for plugin in all_plugins() if plugin.kind == kind}


def component_modules(settings: Mapping[str, Any]) -> list[str]:
    """Return the modules of the components that the plain settings of a stage name, of the package and of plugins."""
    own = [
        f"{package}.{name}"
        for kind, described in KINDS.items()
        for package in described.packages
        for name in modules_in(package)
        if name in _named(settings, kind)
    ]
    return own + [plugin.module for plugin in all_plugins() if plugin.name in _named(settings, plugin.kind)]


def load_component(kind: str, name: str) -> Any:
    """Return the component of this name.

    Raises:
        UserError: there is none, or it is of a plugin that cannot be imported.
    """
    if (plugin := plugins(kind).get(name)) is not None:
        return plugin.load()
    package = KINDS[kind].packages[0]
    if name not in modules_in(package):
        remedy = f"run in the folder of the study that has {FOLDER}/{name}.py, or install the plugin"
        raise UserError(f"no {kind.lower()} is called '{name}'", remedy=remedy)
    return getattr(importlib.import_module(f"{package}.{name}"), kind)


def _named(settings: Mapping[str, Any], kind: str) -> list[str]:
    """Return the names under the key of a kind, in the section of settings that has it."""
    values = settings.get(KINDS[kind].section)
    value = values.get(KINDS[kind].key) if isinstance(values, Mapping) else None
    return [value] if isinstance(value, str) else value or []


def all_plugins() -> tuple[Plugin, ...]:
    return _all_plugins(Path.cwd() / FOLDER)


@cache
def _all_plugins(folder: Path) -> tuple[Plugin, ...]:
    package = sys.modules.setdefault(LOCAL, types.ModuleType(LOCAL))
    package.__spec__ = ModuleSpec(LOCAL, None, is_package=True)
    package.__path__ = package.__spec__.submodule_search_locations = [str(folder)]
    files = {path.stem: (f"{LOCAL}.{path.stem}", path) for path in sorted(folder.glob("[!_.]*.py"))}
    for point in importlib.metadata.entry_points(group=GROUP):
        spec = importlib.util.find_spec(point.value)
        if spec is None or spec.origin is None or point.name in files:
            reason = "two plugins have one name" if point.name in files else "no such module"
            raise UserError(f"plugin '{point.name}': {reason}", where=point.value, remedy="correct the entry point")
        files[point.name] = (point.value, Path(spec.origin))
    kinds = {name: _kind(path) for name, (_, path) in files.items()}
    if kinds:
        _note_reads({str(folder), *(str(path.parent) for _, path in files.values())})
    return tuple(Plugin(name, kind, *files[name]) for name, kind in kinds.items() if kind)


_FOLDERS: set[str] = set()
"""Of plugins."""
_READS: set[tuple[Path, Path]] = set()
"""The files that code of plugins has opened for reading in this process: (file of the plugin, opened file).

A file that a library opens for a plugin counts if it lies below the working folder and not in a folder of results.
"""


def check_reads(code: Collection[str], job: Collection[Path]) -> None:
    """Check that the files that the plugins of a job have read in this process count for the job.

    Args:
        code: the names of the parts of its code.
        job: the files and folders that it reads and writes.

    Raises:
        UserError: a plugin has read another file, whose edits would run nothing again.
    """
    counted, folders = tuple(f"/{name}" for name in code), [path.absolute() for path in job]
    for reader, path in sorted(_READS):
        known = str(path).endswith(counted) or is_installed(path) or any(map(path.is_relative_to, folders))
        if str(reader).endswith(counted) and path.is_file() and not known:
            what = f"the plugin has read {path}, whose edits would run nothing again"
            raise UserError(what, where=reader, remedy=f"move that file into {reader.with_suffix('')}")


def is_installed(path: Path) -> bool:
    """Return whether a file belongs to a distribution.

    Other files, also those of editable installations, are edited by a person.
    """
    return not _INSTALLED.isdisjoint(path.parts)


def _note_reads(folders: Collection[str]) -> None:
    """Note what code in these folders reads, from now on. Hooks cannot be removed: a process has one."""
    python = str(Path(os.__file__).parent) + os.sep

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str) or _writes(*arguments[1:]):
            return
        opened = os.path.abspath(arguments[0])  # noqa: PTH100 - Path.resolve would open files itself
        if opened.startswith(("/proc/", "/sys/", "/dev/")) or opened.endswith(".pyc"):
            return
        frame: types.FrameType | None = sys._getframe(1)
        nearest, roots = True, tuple(_FOLDERS)
        while frame is not None:
            file = frame.f_code.co_filename
            if file.startswith(roots):
                here = str(Path.cwd()) + os.sep
                if nearest or (opened.startswith(here) and f"{os.sep}results{os.sep}" not in opened):
                    _READS.add((Path(file), Path(opened)))
                return
            if not file.startswith((python, "<")) or "site-packages" in file:
                nearest = False
            frame = frame.f_back

    if not _FOLDERS:
        sys.addaudithook(note)
    _FOLDERS.update(folders)


def _writes(mode: str | None, flags: int) -> bool:
    return not set(mode or "").isdisjoint("wax+") or bool(flags & (os.O_WRONLY | os.O_RDWR))


def _kind(path: Path) -> str | None:
    """Return the kind that a file assigns or defines at its top."""
    text = path.read_text(encoding="utf-8", errors="replace")
    match = re.search(rf"^(?:class |def )?({'|'.join(KINDS)})\s*(?:[:(]|=[^=])", text, re.MULTILINE)
    return match[1] if match else None
