"""The code hash: what moves it, what does not, and which modules it reaches."""

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from vitcapr.errors import UserError
from vitcapr.provenance import LIBRARIES, code_hash, library_versions, stage_code


def test_a_stage_reaches_what_it_imports_and_no_more() -> None:
    decode, score, curves = (stage_code(f"vitcapr.cli.{name}") for name in ("decode", "score", "draw_curves"))
    assert {"vitcapr.decoding.beam", "vitcapr.models.captioners", "torch"} <= decode.keys()
    assert {"vitcapr.metrics.java", "pycocoevalcap"} <= score.keys()
    assert "matplotlib" in curves
    assert "torch" not in score.keys() | curves.keys()
    assert not any(name.startswith(("vitcapr.training", "vitcapr.metrics")) for name in decode)


def test_an_option_of_the_beam_does_not_reach_training() -> None:
    assert "vitcapr.config.decoding" in stage_code("vitcapr.cli.decode")
    assert "vitcapr.config.decoding" not in stage_code("vitcapr.cli.train_captioner")


def test_what_only_talks_to_the_user_is_left_out() -> None:
    code = stage_code("vitcapr.cli.decode")
    spoken = {f"vitcapr.{name}" for name in ("errors", "progress", "cli.parts.stage", "cli.parts.options")}
    assert not {"vitcapr", *spoken, "rich", "typer"} & code.keys()


def test_one_hash_of_it_all() -> None:
    first, second = (code_hash(stage_code(f"vitcapr.cli.{name}")) for name in ("decode", "score"))
    assert first == code_hash(dict(stage_code("vitcapr.cli.decode")))
    assert first != second
    assert len(first) == 64


def test_versions_have_no_build_label() -> None:
    versions = library_versions()
    assert versions.keys() == LIBRARIES.keys()
    assert not any("+" in version for version in versions.values())


def test_a_missing_stage_is_a_users_error() -> None:
    with pytest.raises(UserError, match="no such stage module"):
        stage_code("vitcapr.cli.no_such_stage")


def test_a_package_is_hashed_but_not_followed(tmp_path: Path) -> None:
    """``import pkg.sub.a`` runs ``pkg/sub/__init__.py``, so its text counts; what it imports lazily does not."""
    files = {
        "pkg/__init__.py": "from pkg.heavy import everything\n",
        "pkg/heavy.py": "everything = 1\n",
        "pkg/sub/__init__.py": "from pkg.lazy import later\n",
        "pkg/lazy.py": "later = 1\n",
        "pkg/sub/a.py": "from pkg.sub.b import number\n",
        "pkg/sub/b.py": "def number():\n    import pkg.inner\n    return 1\n",
        "pkg/inner.py": "import torch\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    program = "from vitcapr.provenance import stage_code; print(*stage_code('pkg.sub.a', 'pkg'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[1]}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["pkg.inner", "pkg.sub", "pkg.sub.a", "pkg.sub.b", "torch"]


def test_the_hash_needs_no_heavy_import() -> None:
    program = dedent("""
        import sys
        import vitcapr.workflow.experiment
        from vitcapr.provenance import stage_code
        stage_code("vitcapr.cli.train_captioner")
        print([name for name in ("torch", "transformers", "pandas", "matplotlib", "zarr") if name in sys.modules])
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
