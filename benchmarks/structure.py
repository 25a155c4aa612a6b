"""The size and the shape of the code: ``python -m benchmarks.structure``, in the checkout. ``-v`` names the modules."""

import re
import subprocess
import sys
from pathlib import Path

import grimp

PACKAGE = Path("vitcapr")
DECODE = """
import json, sys
from pathlib import Path
from vitcapr.commands.main import main
from vitcapr.stages.decode import decode

def first_line(**_):
    for name, module in sys.modules.items():
        if name.startswith("vitcapr") and getattr(module, "__file__", None) and Path(module.__file__).stat().st_size:
            print(name)

assert decode.parameters
object.__setattr__(decode, "function", first_line)
files = {name: "x" for name, each in decode.options.items() if each.required and name != "settings"}
sys.argv = ["vitcapr", "stage", "decode", "--job", json.dumps(files)]
main()
"""
"""Prints the modules that are loaded at the first line of the work of ``decode``, as a person types it."""
SMALL = 60
FREE = ("vitcapr.stages.", "vitcapr.commands.")
"""Packages whose modules nothing needs to import."""
PARTS = (
    ("api", "commands"),
    ("stages",),
    ("experiment", "pipeline", "config", ""),
    ("report",),
    ("extensions",),
    ("store",),
    ("data",),
    ("formats",),
    ("metrics",),
    ("encoders",),
    ("training", "retrieval", "models", "decoding", "batches", "text"),
)
"""The packages that a row counts together; the empty name is the top level."""


def main() -> None:
    graph = grimp.build_graph("vitcapr", cache_dir=None)
    files = {name: _file(name) for name in graph.modules}
    small = [name for name in files if _is_small(name, files[name]) and len(_importers(graph, name)) == 1]
    run = grimp.build_graph("vitcapr", cache_dir=None, exclude_type_checking_imports=True)
    circles = {frozenset(each) for name in files if (each := _circle(run, name))}
    decode = subprocess.run([sys.executable, "-c", DECODE], capture_output=True, text=True, check=True)
    stages = ("vitcapr.stages.score", "vitcapr.stages.summary")
    scores = {*stages, *(name for stage in stages for name in graph.find_upstream_modules(stage))}
    scores = {name for name in scores if re.match(r"vitcapr\.(stages|formats|metrics|report)\.", name)}
    rules, lines = _rules()
    modules = [path for path in files.values() if path.exists()]
    for what, count, names in (
        ("lines of Python in vitcapr/", sum(map(_lines, modules)), []),
        ("files", len(modules), []),
        *(
            (f"  lines of {', '.join(each or 'the top level' for each in part)}", _lines_of(modules, part), [])
            for part in PARTS
        ),
        ("lines of tests", sum(map(_lines, Path("tests").rglob("*.py"))), []),
        ("lines of docs", sum(map(_lines, Path("docs").rglob("*.md"))), []),
        ("files to the first line of decode", len(decode.stdout.split()), decode.stdout.split()),
        ("files from captions.json to summary.csv", len(scores), sorted(scores)),
        ("lines a rule", round(lines / rules), [f"{rules} rules"]),
        (f"modules under {SMALL} lines with one importer", len(small), sorted(small)),
        ("import circles", len(circles), [" ".join(sorted(each)) for each in circles]),
    ):
        print(f"{what:70} {count:>7,}")
        if "-v" in sys.argv:
            print(*(f"    {name}" for name in names), sep="\n")


def _file(module: str) -> Path:
    path = Path(*module.split("."))
    module_file = path.with_suffix(".py")  # A folder of data may stand beside a module of its name.
    return module_file if module_file.exists() else path / "__init__.py"


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _lines_of(modules: list[Path], packages: tuple[str, ...]) -> int:
    return sum(_lines(path) for path in modules if "".join(path.relative_to(PACKAGE).parts[:-1][:1]) in packages)


def _is_small(module: str, path: Path) -> bool:
    return not module.startswith(FREE) and path.exists() and 0 < _lines(path) < SMALL


def _importers(graph: grimp.ImportGraph, module: str) -> set[str]:
    return graph.find_modules_that_directly_import(module)


def _circle(graph: grimp.ImportGraph, module: str) -> set[str]:
    """``module`` and the modules that it imports, directly or not, and that import it; empty if there are none."""
    others = graph.find_upstream_modules(module) & graph.find_downstream_modules(module)
    return others | {module} if others else set()


def _rules() -> tuple[int, int]:
    """The number of rules, one of them the template of all figures, and the lines of what serves them alone."""
    rules = [Path("Snakefile"), *Path("rules").glob("*.smk"), *PACKAGE.glob("extensions/*/rules.smk")]
    number = sum(
        len(re.findall(r"^ *(?:use )?rule ", path.read_text(encoding="utf-8"), re.MULTILINE)) for path in rules
    )
    return number, sum(map(_lines, [*rules, *Path("vitcapr/experiment").glob("*.py")]))


if __name__ == "__main__":
    main()
