"""Metrics, captioners and backbone readers by name: those of the package, and plugins.

A plugin is a Python file in the folder ``plugins`` of the working folder, or a module that an installed distribution
names as an entry point of the group ``vitcapr.plugins``. It defines one of :data:`KINDS`; a file that defines none is
no plugin and is not run. The name of the file or of the entry point is the plugin's name in the configuration.
"""

import ast
import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
import types
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vitcapr.errors import UserError

FOLDER, GROUP = "plugins", "vitcapr.plugins"
KINDS = {
    "METRIC": ("metrics", "caption"),
    "CAPTIONER": ("captioner", "architecture"),
    "ENCODER": ("backbone", "kind"),
}
"""What a plugin defines -> section and key of a stage's settings that name the plugin."""
_LOCAL = "vitcapr_plugins"
"""The package that the files in ``plugins`` are imported as, so that they can import one another."""


@dataclass(frozen=True)
class Plugin:
    """A plugin; ``kind`` is a key of :data:`KINDS`."""

    name: str
    kind: str
    module: str
    path: Path

    def load(self, attribute: str | None = None) -> Any:
        """What the plugin defines; imports it.

        Raises:
            UserError: it cannot be imported, or does not define ``attribute``.
        """
        try:
            return getattr(importlib.import_module(self.module), attribute or self.kind)
        except Exception as error:
            what = f"the plugin '{self.name}' cannot be used: {type(error).__name__}: {error}"
            raise UserError(what, where=self.path, remedy="correct the file") from error

    def constant(self, name: str) -> Any:
        """The value of a constant of the module, which is not imported; None if there is none."""
        value = _defined(self.path).get(name)
        try:
            return None if value is None else ast.literal_eval(value)
        except ValueError as error:
            what = f"{name} of the plugin '{self.name}' has a value that must be computed"
            raise UserError(what, where=self.path, remedy="write the values out") from error


def modules_in(package: str) -> list[str]:
    """The names of a package's modules, without importing them."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    return [module.name for module in pkgutil.iter_modules(spec.submodule_search_locations)]


def plugins(kind: str) -> dict[str, Plugin]:
    """The plugins of a kind, by name, without importing them.

    Raises:
        UserError: a file is not Python, or two plugins have one name.
    """
    return {plugin.name: plugin for plugin in _all_plugins(Path.cwd() / FOLDER) if plugin.kind == kind}


def plugins_in(settings: dict[str, Any]) -> list[Plugin]:
    """The plugins that the plain settings of a stage name."""
    used = []
    for kind, (section, key) in KINDS.items():
        value = values.get(key) if isinstance(values := settings.get(section), dict) else None
        names = [value] if isinstance(value, str) else value or []
        used += [plugin for name, plugin in plugins(kind).items() if name in names]
    return used


@cache
def _all_plugins(folder: Path) -> tuple[Plugin, ...]:
    package = sys.modules.setdefault(_LOCAL, types.ModuleType(_LOCAL))
    package.__path__ = [str(folder)]
    files = {path.stem: (f"{_LOCAL}.{path.stem}", path) for path in sorted(folder.glob("[!_.]*.py"))}
    for point in importlib.metadata.entry_points(group=GROUP):
        spec = importlib.util.find_spec(point.value)
        if spec is None or spec.origin is None or point.name in files:
            reason = "two plugins have one name" if point.name in files else "no such module"
            raise UserError(f"plugin '{point.name}': {reason}", where=point.value, remedy="correct the entry point")
        files[point.name] = (point.value, Path(spec.origin))
    kinds = {name: next((kind for kind in KINDS if kind in _defined(path)), None) for name, (_, path) in files.items()}
    return tuple(Plugin(name, kind, *files[name]) for name, kind in kinds.items() if kind)


@cache
def _defined(path: Path) -> dict[str, ast.expr]:
    """The names that a file assigns or defines at its top, with the assigned expressions."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise UserError(f"the plugin is not Python: {error}", where=path, remedy="correct the file") from error
    names: dict[str, ast.expr] = {}
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                names[name] = value
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names[name] = ast.Constant(None)
    return names
