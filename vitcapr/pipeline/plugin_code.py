"""What the code of a plugin is, and what a plugin reads besides it."""

import ast
import importlib.metadata
import importlib.util
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.plugins import LOCAL, Plugin, all_plugins, reads

PACKAGE = "vitcapr"
_INSTALLED = {"site-packages", "dist-packages"}
"""The folders of distributions; what lies elsewhere, such as an editable installation, is edited by a person."""


@dataclass
class PluginCode:
    """The code of a plugin.

    Attributes:
        files: by their names: all files of its folder, of the package that it is part of, and of modules beside the
            Snakefile that it imports. Other plugins of the folder count if it imports them.
        modules: those of vitcapr, which it imports.
        libraries: import name -> distribution of what else it imports.
    """

    files: dict[str, Path] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)
    libraries: dict[str, str] = field(default_factory=dict)


@cache
def plugin_code(plugin: Plugin) -> PluginCode:
    """Raises:
    UserError: an import is of no file, no distribution and no module of Python.
    """
    code, others = PluginCode(), {each.path for each in all_plugins() if each.module.startswith(f"{LOCAL}.")}
    root = plugin.module.partition(".")[0]
    if root == LOCAL:
        folder = plugin.path.parent
        waiting = [(folder, path) for path in _tree(folder) if path not in others or path == plugin.path]
    else:
        waiting = list(_module_files(root))
    for base, path in waiting:  # The list grows.
        name = path.relative_to(base.parent).as_posix()
        if name in code.files:
            continue
        code.files[name] = path
        for imported in _imports(path) if path.suffix == ".py" else ():
            first, *rest = imported.split(".")
            if first in ("", LOCAL):  # Of the folder: a file of another plugin counts from now on.
                waiting += [(base, other) for other in others if other.stem in rest]
            elif first == PACKAGE:
                code.modules.add(imported)
            elif first not in sys.stdlib_module_names:
                if distribution := _distribution(first, path):
                    code.libraries[first] = distribution
                else:
                    waiting += _module_files(first)
    return code


def check_reads(job: Collection[Path]) -> None:
    """Check that the files that plugins have read in this process are part of their code.

    Args:
        job: the files and folders that the job reads and writes.

    Raises:
        UserError: a plugin has read another file, whose edits would run nothing again.
    """
    known = set[Path]()
    for plugin in all_plugins() if reads() else ():
        with suppress(UserError):  # of a plugin that the job does not use
            known |= {path.absolute() for path in plugin_code(plugin).files.values()}
    folders = [path.absolute() for path in job]
    for reader, path in sorted(reads()):
        if (
            path.is_file()
            and path not in known
            and not _is_installed(path)
            and not any(map(path.is_relative_to, folders))
        ):
            what = f"the plugin has read {path}, whose edits would run nothing again"
            raise UserError(what, where=reader, remedy=f"move that file into {reader.parent}")


def _tree(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in inside):
            yield path


def _imports(path: Path) -> Iterator[str]:
    """The modules that a file may import; a dot begins those of its own folder."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise UserError(f"the file is not Python: {error}", where=path, remedy="correct the file") from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * min(node.level, 1) + (node.module or "")
            yield from (module, *(f"{module.rstrip('.')}.{alias.name}" for alias in node.names))


def _distribution(root: str, importer: Path) -> str | None:
    """The distribution that an import is of; None if it is of files that a person edits."""
    origin = _origin(root)
    if origin is None:
        what = f"it imports '{root}', which is neither a file of the study nor installed"
        raise UserError(what, where=importer, remedy="install it, or put it into the folder of the plugin")
    names = importlib.metadata.packages_distributions().get(root)
    return names[0] if names and _is_installed(origin) else None


def _origin(root: str) -> Path | None:
    """The file or folder of a module: beside the Snakefile, else where Python finds it."""
    for path in (Path(root, "__init__.py"), Path(f"{root}.py")):
        if path.is_file():
            return (path.parent if path.name == "__init__.py" else path).resolve()
    spec = importlib.util.find_spec(root)
    if spec is None:
        return Path(root).resolve() if Path(root).is_dir() else None
    folders = list(spec.submodule_search_locations or ())
    return Path(folders[0] if folders else spec.origin or "").resolve()


def _module_files(root: str) -> Iterator[tuple[Path, Path]]:
    origin = _origin(root)
    assert origin is not None
    if origin.is_dir():
        yield from ((origin, path) for path in _tree(origin))
    else:
        yield origin, origin


def _is_installed(path: Path) -> bool:
    return not _INSTALLED.isdisjoint(path.parts)
