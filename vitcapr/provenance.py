"""What a stage's results depend on besides its settings and inputs: the code it reaches and a few libraries.

The import graph comes from grimp, which reads the sources and imports nothing, so that the Snakefile can ask for
the hashes of every stage without loading torch.
"""

import ast
import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from vitcapr.errors import UserError
from vitcapr.files import read_json, write_json

if TYPE_CHECKING:
    import grimp

PACKAGE = "vitcapr"

LIBRARIES = {
    "PIL": "pillow",
    "matplotlib": "matplotlib",
    "nltk": "nltk",
    "numpy": "numpy",
    "pycocoevalcap": "pycocoevalcap",
    "torch": "torch",
    "transformers": "transformers",
}
"""Import name -> distribution of the libraries whose release can change a number, a word or a picture.

Those that only carry bytes (zarr, safetensors, pandas, pyarrow) or only talk to the user (typer, rich, pydantic) are
left out: a new release of them is no reason to train again.
"""

SPOKEN = frozenset({f"{PACKAGE}.errors", f"{PACKAGE}.progress", f"{PACKAGE}.cli.stage"})
"""Modules that only talk to the user: a better error message or progress bar makes nothing stale."""


@cache
def stage_code(module: str, package: str = PACKAGE) -> dict[str, str]:
    """Everything that ``module`` runs: a digest for each module of the package, a version for each library.

    Two equal dictionaries mean that the stage computes the same; the differing keys name what was edited.

    Args:
        module: for instance ``vitcapr.cli.decode``.

    Raises:
        UserError: there is no such module, or a library it imports is not installed.
    """
    modules, libraries = _closure(module, package)
    code = {name: _module_digest(name) for name in sorted(modules)}
    return code | {name: _release(name) for name in sorted(libraries)}


def write_code_table(path: Path, package: str = PACKAGE) -> None:
    """Keep the :func:`stage_code` of every command, so that a job need not read the whole package to know its own."""
    modules = sorted(name for name in _graph(package).modules if name.startswith(f"{package}.cli."))
    stages = {module: stage_code(module, package) for module in modules}
    reached = {name for code in stages.values() for name in code if name.startswith(f"{package}.")}
    write_json(path, {"stages": stages, "files": {name: _state(name) for name in sorted(reached)}})


def stage_code_from(path: Path, module: str, package: str = PACKAGE) -> dict[str, str]:
    """:func:`stage_code`, from the table at ``path`` where that is there and no file has changed since."""
    if path.is_file():
        table = read_json(path)
        code: dict[str, str] = table["stages"].get(module, {})
        known = {name: state for name, state in table["files"].items() if name in code}
        if code and all(_state(name) == state for name, state in known.items()):
            return code
    return stage_code(module, package)


def code_hash(module: str, package: str = PACKAGE) -> str:
    """One hash of :func:`stage_code`, for a card."""
    entries = "\n".join(f"{name} {value}" for name, value in stage_code(module, package).items())
    return hashlib.sha256(entries.encode()).hexdigest()


def library_versions() -> dict[str, str]:
    """The installed release of every library in :data:`LIBRARIES`."""
    return {name: _release(name) for name in sorted(LIBRARIES)}


def tree_digest(source: str) -> str:
    """16 hexadecimal digits that stay the same under comments, docstrings, blank lines and layout."""
    digest = hashlib.sha256()
    for piece in _spell(ast.parse(source)):
        digest.update(piece.encode())
        digest.update(b"\x00")
    return digest.hexdigest()[:16]


def _spell(node: ast.AST) -> Iterator[str]:
    """The tree in prefix order; empty fields are left out, for newer Pythons add some."""
    yield type(node).__name__
    for field in node._fields:
        value = getattr(node, field, None)
        if value is None and not (field == "value" and isinstance(node, ast.Constant)):
            continue
        if isinstance(value, ast.AST):
            yield field
            yield from _spell(value)
        elif isinstance(value, list):
            kept = [item for item in value if not _is_bare_string(item)]
            if kept:
                yield f"{field}["
                for item in kept:
                    if isinstance(item, ast.AST):
                        yield from _spell(item)
                    else:
                        yield repr(item)
                yield "]"
        else:
            yield f"{field}={value!r}"


def _is_bare_string(node: object) -> bool:
    """A docstring, of whatever it stands under: a string that nothing is done with."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _closure(module: str, package: str) -> tuple[set[str], set[str]]:
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
        if name in reached or name in SPOKEN or name == package:
            continue
        if not name.startswith(f"{package}."):
            if name in LIBRARIES:
                libraries.add(name)
            continue
        reached.add(name)
        waiting.append(name.rpartition(".")[0])
        if not _is_package(name):
            waiting.extend(graph.find_modules_directly_imported_by(name))
    return reached, libraries


@cache
def _graph(package: str) -> "grimp.ImportGraph":
    import grimp

    return grimp.build_graph(package, include_external_packages=True, cache_dir=None)


@cache
def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UserError("no such package", where=package, remedy="pip install -e .")
    return Path(spec.submodule_search_locations[0])


def _path(module: str) -> Path:
    package, _, rest = module.partition(".")
    path = _folder(package).joinpath(*rest.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _state(module: str) -> list[int] | None:
    """Time and size of a module's file; None for one that is no longer there."""
    try:
        state = _path(module).stat()
    except FileNotFoundError:
        return None
    return [state.st_mtime_ns, state.st_size]


def _is_package(module: str) -> bool:
    return _path(module).name == "__init__.py"


@cache
def _module_digest(module: str) -> str:
    return tree_digest(_path(module).read_text(encoding="utf-8"))


@cache
def _release(library: str) -> str:
    """The version without its local label: the CPU and the CUDA build of a release count as the same."""
    try:
        return importlib.metadata.version(LIBRARIES[library]).partition("+")[0]
    except importlib.metadata.PackageNotFoundError as error:
        raise UserError(f"{library} is not installed", remedy="make venv") from error
