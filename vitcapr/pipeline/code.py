"""The code of a job: the modules that it imports with their data, its plugins, and the versions of libraries.

The import graph comes from grimp, which reads the sources and imports nothing. What a stage looks up by name, such as a
metric or the architecture of a captioner, counts where the settings name it (:mod:`vitcapr.loader`).
"""

import ast
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from vitcapr.errors import UserError
from vitcapr.files import sha256_bytes, sha256_file, write_json
from vitcapr.loader import LOCAL, extensions, is_installed, part_modules

if TYPE_CHECKING:
    import grimp

PACKAGE = "vitcapr"
HARMLESS: dict[str, dict[str, str]] = yaml.safe_load(
    Path(__file__).with_name("libraries.yaml").read_text(encoding="utf-8")
)
"""Names of ``libraries``, of ``modules`` of the package and of libraries whose ``patches`` do not affect results -> the
reason. All others count."""
_UNCOUNTED = HARMLESS["libraries"].keys() | {f"{name.replace('.', '/')}.py" for name in HARMLESS["modules"]}
KNOWN_DIGESTS = Path(importlib.util.cache_from_source(__file__)).with_name(f"{sha256_file(Path(__file__))[:16]}.json")
"""Digests of Python files by this code, in Python's own cache. Deleting the file costs only time."""
NOT_INSTALLED = "not installed"


def job_code(module: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each file of a job's code, by path, and the version of each library.

    Its plain settings name metrics, architectures and plugins. An extension adds to a YAML file of the package, such as
    the labels of scores, by the file of this name in its folder.

    Raises:
        UserError: a plugin is not Python, or imports what is not installed.
    """
    return _code_of(module, *part_modules(settings))


@cache
def _code_of(*modules: str) -> dict[str, str]:
    packages = sorted({PACKAGE, *(name.partition(".")[0] for name in modules if "." in name)})
    code = {name: value for each in modules for name, value in module_code(each, *packages).items()}
    tables = {Path(name).name for name in code if name.startswith(PACKAGE) and name.endswith(".yaml")}
    added = {
        f"{'plugins' if package == LOCAL else package.replace('.', '/')}/{table}": folder / table
        for table in tables
        for package, folder in extensions().items()
    }
    return dict(sorted({**code, **digests({name: path for name, path in added.items() if path.is_file()})}.items()))


def code_hash(code: Mapping[str, str]) -> str:
    """Hash what counts of a :func:`job_code`."""
    return sha256_bytes("\n".join(f"{name} {value}" for name, value in counted(code).items()).encode())


def counted(code: Mapping[str, str]) -> dict[str, str]:
    """Return what may change results, of a :func:`job_code` of today or of a record.

    >>> counted({"vitcapr/progress.py": "a1", "vitcapr/files.py": "b2", "numpy": "2.1.3", "yaml": "6.0"})
    {'vitcapr/files.py': 'b2', 'numpy': '2.1'}
    """
    return {
        name: value.rpartition(".")[0] if name in HARMLESS["patches"] and value.count(".") > 1 else value
        for name, value in code.items()
        if name not in _UNCOUNTED
    }


@cache
def module_code(module: str, *packages: str) -> dict[str, str]:
    """Return the code that importing and running a module can reach. Imports are followed in these packages."""
    graph = _import_graph(packages or (PACKAGE,))
    reached = {module, *graph.find_upstream_modules(module)} - {PACKAGE, LOCAL}
    inside = {name for name in reached if not graph.is_module_squashed(name)}
    roots = (
        {name.partition(".")[0] for name in reached - inside} - sys.stdlib_module_names - HARMLESS["libraries"].keys()
    )
    libraries = {root: release(root) for root in roots}
    for root, version in libraries.items():
        if version == NOT_INSTALLED and not module.startswith(f"{PACKAGE}."):
            what = f"it imports '{root}', which is neither a file of the study nor installed"
            raise UserError(what, where=module, remedy="install it, or put it into the folder of the plugin")
    return digests({path: file for name in inside for path, file in _files(name).items()}) | libraries


@cache
def _import_graph(packages: tuple[str, ...]) -> "grimp.ImportGraph":
    """Return the graph of imports, in which a module also imports its package.

    Two parts are left out: the late imports of ``vitcapr/__init__.py``, which concern no stage, and the configuration
    of the package and of extensions, whose values are in the settings of a job.
    """
    import grimp

    how: dict[str, Any] = {"include_external_packages": True, "exclude_type_checking_imports": True, "cache_dir": None}
    try:
        # Its code in Rust panics at Ctrl-C, which the main thread alone gets: the graph is built in another.
        with ThreadPoolExecutor(1) as pool:
            graph = pool.submit(grimp.build_graph, *packages, **how).result()
    except grimp.exceptions.SourceSyntaxError as error:
        raise UserError("the file is not Python", where=f"{error.filename}, line {error.lineno}") from error
    for imported in graph.find_modules_directly_imported_by(PACKAGE):
        graph.remove_import(importer=PACKAGE, imported=imported)
    for name in graph.modules:
        if name.endswith((".config", ".settings")):
            graph.remove_module(name)  # What lies in it goes, too.
    modules = graph.modules
    for name in modules:
        if (package := name.rpartition(".")[0]) in modules:
            graph.add_import(importer=name, imported=package)
    return graph


@cache
def release(library: str) -> str:
    """Return the version without its local label: the CPU and the CUDA build of a release count as the same.

    For a module beside the Snakefile or in an editable installation, it is the digest of the Python files.
    """
    spec = PathFinder.find_spec(library, [str(Path.cwd()), *sys.path]) or importlib.util.find_spec(library)
    if spec is None:
        return NOT_INSTALLED
    origin = Path([*(spec.submodule_search_locations or ()), spec.origin or ""][0])
    if not is_installed(origin):
        files = sorted(origin.rglob("*.py")) or [origin]
        return code_hash(digests({path.relative_to(origin).as_posix(): path for path in files}))[:16]
    distribution = {"PIL": "pillow", "sklearn": "scikit-learn"}.get(library, library)
    try:
        return importlib.metadata.version(distribution).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return importlib.metadata.version(importlib.metadata.packages_distributions()[library][0])


@cache
def _files(module: str) -> dict[str, Path]:
    """Return a module's file and its data, by their paths.

    Data are files beside it with its name, ``lexicon.yaml`` of ``lexicon.py``, and the files of a folder with its name.
    """
    root, *inner = module.split(".")
    spec: Any = importlib.util.find_spec(root)
    folder = Path(spec.submodule_search_locations[0])
    path = folder.joinpath(*inner)
    package = path / "__init__.py"  # A folder without one, such as one that git has emptied, hides no module.
    own = package if package.exists() else path.with_suffix(".py")
    data = [] if own == package else sorted([*path.parent.glob(f"{path.name}.*"), *path.rglob("*")])
    files = [own, *(each for each in data if each.suffix not in (".py", ".pyc"))]
    return {each.relative_to(folder.parent).as_posix(): each for each in files if each.is_file()}


def digests(paths: Mapping[str, Path]) -> dict[str, str]:
    """Return the :func:`tree_digest` of each Python file, and the sha256 of each other one."""
    known, contents = _known_digests(), {name: sha256_file(path) for name, path in paths.items()}
    new = {key for name, key in contents.items() if paths[name].suffix == ".py"} - known.keys()
    if new:
        known |= {key: tree_digest(paths[name].read_bytes()) for name, key in contents.items() if key in new}
        with suppress(OSError, UserError):  # the disk is full or read-only
            write_json(KNOWN_DIGESTS, known)
    return {name: known.get(key, key) for name, key in contents.items()}


@cache
def _known_digests() -> dict[str, str]:
    with suppress(OSError, ValueError, TypeError):
        return dict(json.loads(KNOWN_DIGESTS.read_bytes()))
    return {}


def tree_digest(source: bytes) -> str:
    """Return the digest of a source, without comments, docstrings and layout, as 16 hexadecimal digits."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            kept = [each for each in body if not (isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant))]
            node.body = kept  # type: ignore[attr-defined]
    return sha256_bytes(ast.unparse(tree).encode())[:16]
