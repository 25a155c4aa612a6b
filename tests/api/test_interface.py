"""The names that a Python user gets: lazy, typed, and of no stage's concern."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import vitcapr

PACKAGE = Path(vitcapr.__file__).parent


def test_every_name_is_there_and_typed() -> None:
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    typed = {
        alias.name: f"{node.module}" for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert typed == vitcapr._HOMES
    assert (PACKAGE / "py.typed").is_file()
    assert set(dir(vitcapr)) == {"__version__", *typed}
    for name in typed:
        assert callable(getattr(vitcapr, name))
    with pytest.raises(AttributeError, match="has no attribute 'load_captoiner'"):
        _ = vitcapr.load_captoiner


def test_importing_the_package_loads_nothing() -> None:
    program = "import sys, vitcapr; print([name for name in sys.modules if name.startswith(('vitcapr.', 'numpy'))])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
