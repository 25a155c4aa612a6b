"""The code that determines a stage's results: the modules that it reaches and the versions of some libraries.

The import graph comes from grimp, which reads the sources and imports nothing, so that the Snakefile can ask for the
hashes of every stage without loading torch.
"""

import ast
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes, sha256_file, write_json
from vitcapr.plugins import FOLDER, Plugin, plugins_in

if TYPE_CHECKING:
    import grimp

PACKAGE = "vitcapr"
FOUND_BY_NAME = {"vitcapr.metrics.scoring": "vitcapr.metrics.captions"}
"""Module -> the package whose modules it imports by name, which the import graph does not show."""

BY_SETTING = {
    "vitcapr.encoders.captioner_networks": "language_model",
    "vitcapr.models.language_model_captioner": "language_model",
}
"""Module -> the key of the settings of a job without which the module does not run, nor what only it imports. The jobs
after it read the card of the model, which states the code that trained it."""

LABELS = "vitcapr.metrics.labels"
"""The module whose data file, ``labels.yaml``, changes no result."""

_EFFECTS = yaml.safe_load(Path(__file__).with_name("libraries.yaml").read_text(encoding="utf-8"))
LIBRARIES: dict[str, str] = _EFFECTS["results"]
"""Import name -> distribution, for libraries whose version can change a result."""
HARMLESS: dict[str, str] = _EFFECTS["harmless"]
"""Import name -> the reason why its version does not affect results. All imported libraries are in one of the two."""

OPTIONAL = {"pillow_heif": (".heic", ".heif")}
"""Import name -> endings of the files that only this library reads. It counts for a job that reads such a file of the
user; for the jobs after it, the manifest of the data set states its version."""

NOT_INSTALLED = "not installed"
"""The version recorded for a library that is not installed, such as the optional hanlp."""

USER_FACING = tuple(
    f"{PACKAGE}.{name}" for name in ("errors", "config.mistakes", "plugins", "progress", "pipeline", "formats.kinds")
)
"""User-facing modules and packages. A changed message or progress bar does not trigger a re-run."""


MESSAGES = frozenset({"UserError", "Diverged", "Preempted", "ValueError", "TypeError", "IndexError"})
"""Exceptions whose arguments only make a message that no result holds, as those of ``report.line``.

``BadImage`` and its like are left out: their text stands in ``rejected.csv``.
"""


@cache
def stage_code(
    module: str,
    package: str = PACKAGE,
    remembered: Path | None = None,
    keys: frozenset[str] = frozenset(),
) -> dict[str, str]:
    """The code that ``module`` runs: a digest for each module of the package, a version for each library.

    A module's data file, ``lexicon.yaml`` beside ``lexicon.py``, counts as a module, byte for byte.

    Two equal dictionaries mean that the stage computes the same; the differing keys name what was edited.

    Args:
        module: for instance ``vitcapr.stages.decode``.
        remembered: see :func:`digests`.
        keys: of :data:`BY_SETTING` that the settings have.

    Raises:
        UserError: there is no such module.
    """
    modules, libraries = _closure(module, package, keys)
    libraries = libraries - OPTIONAL.keys()
    paths = {name: _path(name) for name in sorted(modules)}
    data = {f"{name}.yaml": path.with_suffix(".yaml") for name, path in paths.items() if name != LABELS}
    code = digests(paths, remembered) | {name: sha256_file(path) for name, path in data.items() if path.is_file()}
    return code | {name: _release(name) for name in sorted(libraries)}


def job_code(module: str, settings: Mapping[str, Any], remembered: Path | None = None) -> dict[str, str]:
    """The code of a job: that of its stage with these settings, and that of the plugins which they name."""
    keys = frozenset(key for key in BY_SETTING.values() if _has(settings, key))
    code = stage_code(module, remembered=remembered, keys=keys)
    for plugin in plugins_in(dict(settings)):
        code = code | _plugin_code(plugin, remembered)
    return code


def _has(settings: object, key: str) -> bool:
    """Whether nested settings have a value under a key."""
    if not isinstance(settings, Mapping):
        return False
    return settings.get(key) is not None or any(_has(value, key) for value in settings.values())


@cache
def _plugin_code(plugin: Plugin, remembered: Path | None) -> dict[str, str]:
    """The files of a plugin, the modules of the package that they import, and the versions of other libraries."""
    files, code = [plugin.path], dict[str, str]()
    for path in files:  # The list grows.
        for name in _imports(path):
            root, file = name.partition(".")[0], path.parent.joinpath(*name.split(".")).with_suffix(".py")
            if not root:
                files += [file] if name.strip(".") and file.exists() and file not in files else []
            elif root == PACKAGE:
                code |= stage_code(name, remembered=remembered) if name in _graph(PACKAGE).modules else {}
            elif root not in sys.stdlib_module_names and root not in HARMLESS:
                code[root] = _release(LIBRARIES.get(root) or next(iter(_distributions().get(root, ())), root))
    named = {f"{FOLDER}/{path.relative_to(plugin.path.parent).as_posix()}": path for path in files}
    return code | digests(named, remembered)


@cache
def _distributions() -> Mapping[str, list[str]]:
    """The distributions of each import name."""
    return importlib.metadata.packages_distributions()


def _imports(path: Path) -> Iterator[str]:
    """The modules that a file may import; a dot begins those of its own folder."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from (module, *(f"{module.rstrip('.')}.{alias.name}" for alias in node.names))


def code_hash(code: Mapping[str, str]) -> str:
    """One hash of a :func:`stage_code`."""
    return sha256_bytes("\n".join(f"{name} {value}" for name, value in code.items()).encode())


@cache
def _closure(module: str, package: str, keys: frozenset[str] = frozenset()) -> tuple[frozenset[str], frozenset[str]]:
    """The modules that importing and running ``module`` can reach, and the listed libraries among their imports.

    A package's ``__init__`` counts, for importing a module runs it, but is not followed further: it is empty, but for
    the one at the top, whose version number and lazily imported conveniences concern no stage and which is left out.
    """
    graph = _graph(package)
    if module not in graph.modules:
        raise UserError("no such stage module", where=module, remedy="the checkout is incomplete: git status")
    reached: set[str] = set()
    libraries: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in reached or name == package or any(f"{name}.".startswith(f"{each}.") for each in USER_FACING):
            continue
        if not name.startswith(f"{package}."):
            libraries |= {name} & LIBRARIES.keys()
            continue
        if BY_SETTING.get(name, name) not in {name, *keys}:
            continue
        path = _path(name)
        reached.add(name)
        waiting.append(name.rpartition(".")[0])
        if path.name != "__init__.py":
            waiting.extend(graph.find_modules_directly_imported_by(name))
        if name in FOUND_BY_NAME:
            waiting.extend(graph.find_children(FOUND_BY_NAME[name]))
    return frozenset(reached), frozenset(libraries)


@cache
def _graph(package: str) -> "grimp.ImportGraph":
    import grimp

    return grimp.build_graph(package, include_external_packages=True, cache_dir=None)


@cache
def _path(module: str) -> Path:
    package, _, rest = module.partition(".")
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations
    path = Path(spec.submodule_search_locations[0]).joinpath(*rest.split("."))
    package_file = path / "__init__.py"  # A folder without one, such as one that git has emptied, hides no module.
    return package_file if package_file.exists() else path.with_suffix(".py")


def optional_libraries(module: str, sources: Iterable[Path]) -> dict[str, str]:
    """The versions of the libraries of :data:`OPTIONAL` with which a stage reads a file of these folders, zips and
    files; empty for a stage that reads no images, whose sources are not listed."""
    if not OPTIONAL.keys() & _closure(module, PACKAGE)[1]:
        return {}
    names = [name for path in sources for name in _names_in(path)]
    return {
        library: _release(library)
        for library, endings in OPTIONAL.items()
        if any(name.lower().endswith(endings) for name in names)
    }


def _names_in(path: Path) -> list[str]:
    if not (path.is_dir() or path.suffix.lower() == ".zip"):
        return [path.name]
    from vitcapr.data.archive import Archive

    with Archive(path) as archive:
        return archive.files()


@cache
def _release(library: str) -> str:
    """The version without its local label: the CPU and the CUDA build of a release count as the same."""
    try:
        return importlib.metadata.version(LIBRARIES.get(library, library)).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return NOT_INSTALLED


def digests(paths: Mapping[str, Path], remembered: Path | None = None) -> dict[str, str]:
    """The :func:`tree_digest` of each file.

    Args:
        remembered: a file of known digests, so that a job need not parse the package again. Deleting it costs only
            time.
    """
    memory = _memory(remembered)
    size, found = len(memory), {}
    for name, path in paths.items():
        source = path.read_bytes()
        key = sha256_bytes(_this_module() + source)
        if key not in memory:
            memory[key] = tree_digest(source.decode())
        found[name] = memory[key]
    if remembered is not None and len(memory) > size:
        with suppress(OSError, UserError):  # the disk is full or read-only
            write_json(remembered, memory)
    return found


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
    """The digest of a source, without comments, docstrings, layout and :data:`MESSAGES`, as 16 hexadecimal digits."""
    return sha256_bytes(_spell(ast.parse(source)).encode())[:16]


def _spell(node: object) -> str:
    """The tree as text, without empty fields: newer Pythons add some."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return ""  # A docstring, of whatever it stands under: a string that nothing is done with.
        case ast.Call(func=ast.Name(id=name)) if name in MESSAGES:
            return name
        case ast.Call(
            func=ast.Attribute(
                value=ast.Name(id="report" | "reporter") | ast.Attribute(attr="reporter"),
                attr="line",
            )
        ):
            return "line"
        case ast.AST():
            named = {name: getattr(node, name, None) for name in node._fields}
            fields = [(n, v) for n, v in named.items() if v not in (None, []) or isinstance(node, ast.Constant)]
            return f"{type(node).__name__}({', '.join(f'{name}={_spell(value)}' for name, value in fields)})"
        case list():
            return f"[{', '.join(filter(None, map(_spell, node)))}]"
    return repr(node)
