"""The code that determines a stage's results: the files that it imports, their data, and the versions of libraries.

The import graph comes from grimp, which reads the sources and imports nothing, so that the Snakefile can ask for the
code of every stage without loading torch. What a stage imports counts; what it finds by the name of a setting, a metric
or the architecture of a captioner, counts where the settings name it (:mod:`vitcapr.plugins`).
"""

import ast
import importlib.metadata
import importlib.util
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes, sha256_file, write_json
from vitcapr.pipeline.plugin_code import plugin_code
from vitcapr.plugins import component_modules, plugins, plugins_in

if TYPE_CHECKING:
    import grimp

PACKAGE = "vitcapr"
_EFFECTS = yaml.safe_load(Path(__file__).with_name("libraries.yaml").read_text(encoding="utf-8"))
LIBRARIES: dict[str, str] = _EFFECTS["results"]
"""Import name -> distribution, for libraries whose version can change a result."""
HARMLESS: dict[str, str] = _EFFECTS["harmless"]
"""Import name -> the reason why its version does not affect results. All imported libraries are in one of the two."""
NOT_INSTALLED = "not installed"
"""The version recorded for a library that is not installed, such as the optional hanlp."""
_LABELS = f"{PACKAGE}.metrics.labels"
"""The module that reads the labels of all plugins of metrics."""


def job_code(module: str, settings: Mapping[str, Any], remembered: Path | None = None) -> dict[str, str]:
    """The code of a job: a digest for each file, a version for each library.

    Two equal dictionaries mean that the jobs compute the same; the differing keys name what was edited.

    Args:
        module: of the stage, for instance ``vitcapr.stages.decode``.
        settings: plain settings, which name metrics, architectures and plugins.
        remembered: see :func:`digests`.

    Raises:
        UserError: there is no such module, or a plugin imports what cannot be followed.
    """
    code = stage_code(module, remembered)
    for name in component_modules(settings):
        code = code | stage_code(name, remembered)
    used = {*plugins_in(settings), *(plugins("METRIC").values() if _LABELS in code else ())}
    for plugin in sorted(used, key=lambda plugin: plugin.name):
        part = plugin_code(plugin)
        for name in sorted(part.modules & _graph(PACKAGE).modules):
            code = code | stage_code(name, remembered)
        libraries = {name: of for name, of in part.libraries.items() if name not in HARMLESS}
        code = code | digests(part.files, remembered) | {name: _release(of) for name, of in sorted(libraries.items())}
    return code


@cache
def stage_code(module: str, remembered: Path | None = None, package: str = PACKAGE) -> dict[str, str]:
    """The code that importing and running ``module`` can reach.

    Raises:
        UserError: there is no such module.
    """
    modules, libraries = _closure(module, package)
    files = {name: path for module in modules for name, path in _files(module)}
    return digests(files, remembered) | {name: _release(name) for name in sorted(libraries)}


def code_hash(code: Mapping[str, str]) -> str:
    """One hash of a :func:`job_code`."""
    return sha256_bytes("\n".join(f"{name} {value}" for name, value in code.items()).encode())


def _closure(module: str, package: str) -> tuple[list[str], set[str]]:
    """The modules of the package that ``module`` can reach, and the listed libraries among their imports.

    A package's ``__init__`` counts, for importing a module runs it, but is not followed: it is empty, but for the one
    at the top, whose version number and lazily imported conveniences concern no stage and which is left out. So is the
    package of the configuration and ``config`` of a room: the values are in the settings of a job.
    """
    graph = _graph(package)
    if module not in graph.modules:
        raise UserError("no such stage module", where=module, remedy="the checkout is incomplete: git status")
    reached: set[str] = set()
    libraries: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if (
            name in reached
            or name == package
            or f"{name}.".startswith(f"{package}.config.")
            or name.endswith(".config")
        ):
            continue
        if not name.startswith(f"{package}."):
            libraries |= {name} & LIBRARIES.keys()
            continue
        reached.add(name)
        waiting.append(name.rpartition(".")[0])
        if _path(name).name != "__init__.py":
            waiting.extend(graph.find_modules_directly_imported_by(name))
    return sorted(reached), libraries


def _files(module: str) -> Iterator[tuple[str, Path]]:
    """A module's file and its data: files beside it with its name, ``lexicon.yaml`` of ``lexicon.py``, and the files of
    a folder with its name."""
    path = _path(module)
    yield module, path
    if path.name != "__init__.py":
        data = [each for each in path.parent.glob(f"{path.stem}.*") if each != path and each.stem == path.stem]
        data += [each for each in path.with_suffix("").rglob("*") if each.is_file()]
        yield from ((f"{module}:{each.relative_to(path.parent).as_posix()}", each) for each in sorted(data))


@cache
def _graph(package: str) -> "grimp.ImportGraph":
    import grimp

    return grimp.build_graph(
        package, include_external_packages=True, exclude_type_checking_imports=True, cache_dir=None
    )


@cache
def _path(module: str) -> Path:
    package, _, rest = module.partition(".")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    path = Path(spec.submodule_search_locations[0]).joinpath(*rest.split("."))
    package_file = path / "__init__.py"  # A folder without one, such as one that git has emptied, hides no module.
    return package_file if package_file.exists() else path.with_suffix(".py")


@cache
def _release(library: str) -> str:
    """The version without its local label: the CPU and the CUDA build of a release count as the same."""
    try:
        return importlib.metadata.version(LIBRARIES.get(library, library)).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return NOT_INSTALLED


def digests(paths: Mapping[str, Path], remembered: Path | None = None) -> dict[str, str]:
    """The :func:`tree_digest` of each Python file, and the sha256 of each other one.

    Args:
        remembered: a file of known digests, so that a job need not parse the package again. Deleting it costs only
            time.
    """
    memory = _memory(remembered)
    size, values = len(memory), dict[str, str]()
    for name, path in paths.items():
        if path.suffix != ".py":
            values[name] = sha256_file(path)
            continue
        source = path.read_bytes()
        key = sha256_bytes(_this_module() + source)
        if key not in memory:
            memory[key] = tree_digest(source.decode())
        values[name] = memory[key]
    if remembered is not None and len(memory) > size:
        with suppress(OSError, UserError):  # the disk is full or read-only
            write_json(remembered, memory)
    return values


@cache
def _memory(remembered: Path | None) -> dict[str, str]:
    try:
        content = {} if remembered is None else json.loads(remembered.read_bytes())
        return {key: digest for key, digest in content.items() if isinstance(digest, str)}
    except (OSError, ValueError, AttributeError):
        return {}


@cache
def _this_module() -> bytes:
    """A change of this module changes all digests."""
    return Path(__file__).read_bytes()


def tree_digest(source: str) -> str:
    """The digest of a source, without comments, docstrings and layout, as 16 hexadecimal digits."""
    return sha256_bytes(_spell(ast.parse(source)).encode())[:16]


def _spell(node: object) -> str:
    """The tree as text, without empty fields: newer Pythons add some."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return ""  # A docstring, of whatever it stands under: a string that nothing is done with.
        case ast.AST():
            named = {name: getattr(node, name, None) for name in node._fields}
            fields = [(n, v) for n, v in named.items() if v not in (None, []) or isinstance(node, ast.Constant)]
            return f"{type(node).__name__}({', '.join(f'{name}={_spell(value)}' for name, value in fields)})"
        case list():
            return f"[{', '.join(filter(None, map(_spell, node)))}]"
    return repr(node)
