"""The names that a Python user gets: lazy, typed, and of no stage's concern."""

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("evaluate", {"captions": {}, "references": {}, "metrics": "blue"}),
        ("evaluate", {"captions": {}, "references": {}, "samples": -1}),
        ("evaluate_retrieval", {"images": [[1.0]], "texts": [[1.0]], "seed": 0.5}),
        ("load_captioner", {"folder": "absent", "beam_size": 2.5}),
        ("load_retriever", {"folder": "absent", "device": "gpu"}),
        ("run", {"stage": "data_photograph", "folder": "out"}),
        ("run", {"stage": "data_photographs", "settings": {"table": {"images": 3}}, "folder": "out"}),
        ("run", {"stage": "data_photographs", "settings": {"table": {"limit": object()}}, "folder": "out"}),
        ("run", {"stage": "vocabulary", "manifest": "absent", "vocabulary": "out"}),
        ("run", {"stage": "adopt", "manifest": "absent", "store": "absent", "sealed": "out", "split": "x"}),
        ("extract", {"data": "absent", "backbone": "absent", "out": "out", "batch": "many"}),
        ("extract", {"data": "absent", "backbone": "absent", "out": "out", "rank": -1, "of": 2}),
    ],
)
def test_a_mistake_is_one_line(name: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    values = {key: tmp_path / "out" if value == "out" else value for key, value in arguments.items()}
    with pytest.raises(vitcapr.UserError) as caught:
        getattr(vitcapr, name)(**values)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_importing_the_package_loads_nothing() -> None:
    program = "import sys, vitcapr; print([name for name in sys.modules if name.startswith(('vitcapr.', 'numpy'))])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
