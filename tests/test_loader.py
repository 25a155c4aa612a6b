"""The metric, the captioner and the backbone reader of docs/extend.md work as those of the package do."""

import importlib.metadata
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.data_sets import write_noise
from tests.docs.blocks import blocks_of
from tests.forks import SNAKEMAKE, Forks
from vitcapr.config.objective import Loss
from vitcapr.config.parts import Names
from vitcapr.errors import UserError
from vitcapr.loader import GROUP, LOCAL, _found, check_reads, extension_parts, parts
from vitcapr.pipeline import code as hashing
from vitcapr.pipeline.code import job_code
from vitcapr.pipeline.stage import _modules as stage_modules
from vitcapr.pipeline.stage import import_own_stages

REPOSITORY = Path(__file__).parents[1]
LIBRARIES = """
torch torch._dynamo transformers.models.blip_2.modeling_blip_2 matplotlib.backends.backend_pdf pandas pyarrow.parquet
scipy.stats PIL.Image zarr safetensors.torch pydantic typer rich
"""
EXAMPLES = ("losses/dcl", "exact_match", "stages/count_lengths", "settings", "gru", "means")
"""The plugins that docs/extend.md shows; a script of a figure follows."""
BLOCKS = list(blocks_of(REPOSITORY / "docs/extend.md"))
RULE = next(block.text for block in BLOCKS if block.text.startswith("rule lengths:"))
CONFIG = """
experiment: mine
data: {dataset: table, table: {images: photographs, captions: captions.csv}}
text: {vocabulary: {min_count: 1}}
backbones: {means: {source: colours, kind: means, dtype: float32}}
captioners: {mine: {backbone: means, architecture: gru, layers: 2, training: {phases: {epochs: 1}}}}
metrics: {caption: [bleu, exact_match], bootstrap_samples: 10}
retrievers: {pairs: {backbone: means, training: {phases: {epochs: 1, objective: {kind: dcl, weight: 0.5}}}}}
figures: none
run: {captioners: [mine], retrievers: [pairs]}
"""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("losses", "stages"):
        (tmp_path / "plugins" / kind).mkdir(parents=True)
    shown = [block.text for block in BLOCKS if block.language == "python"][:7]
    for name, text in zip([*(f"plugins/{name}" for name in EXAMPLES), "lengths"], shown, strict=True):
        (tmp_path / f"{name}.py").write_text(text)
    labels = next(block.text for block in BLOCKS if block.text.startswith("scores: {exact_m"))
    (tmp_path / "plugins" / "labels.yaml").write_text(labels)
    rules = next(block.text for block in BLOCKS if block.text.startswith("use rule cpu_job"))
    (tmp_path / "plugins" / "rules.smk").write_text(rules)
    (tmp_path / "plugins" / "_counting.py").touch()
    with (tmp_path / "plugins" / "exact_match.py").open("a") as metric:
        metric.write("\nfrom . import _counting\n")
    (tmp_path / "plugins" / "no_plugin.py").write_text("raise RuntimeError('this file is not run')\n")
    monkeypatch.chdir(tmp_path)
    forget()
    return tmp_path


def forget() -> None:
    for cached in (
        _found,
        hashing._code_of,
        hashing.module_code,
        hashing._import_graph,
        hashing._files,
        hashing.release,
    ):
        cached.cache_clear()
    for name in [name for name in sys.modules if name == "beside" or name.startswith(f"{LOCAL}.")]:
        del sys.modules[name]


def write_data(study: Path) -> None:
    names, things, splits = [f"{number}.png" for number in range(8)], ("dog", "cat"), ("train", "train", "val", "test")
    write_noise(study / "photographs", names)
    rows = [f"{name},A {thing}.,{split}" for name, thing, split in zip(names, 4 * things, 2 * splits, strict=True)]
    (study / "captions.csv").write_text("\n".join(["image,caption,split", *rows]))
    (study / "colours").mkdir()
    (study / "colours" / "config.json").write_text("{}")
    save_file({"nothing": np.zeros(1, np.float32)}, study / "colours" / "model.safetensors")


def test_they_work_as_a_user_runs_them(study: Path) -> None:
    """Every command is a process of its own, as typed: one process that imports in another order hides a circle. Only
    libraries are imported before."""
    forks = Forks(*SNAKEMAKE, *LIBRARIES.split())

    def run(*arguments: str, folder: Path = study / "mine", code: int = 0) -> str:
        done = forks.run("-m", *arguments, folder=folder)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    run("vitcapr", "init", "mine", folder=study)
    for name in ("plugins", "lengths.py"):
        shutil.move(study / name, study / "mine" / name)
    write_data(study / "mine")
    (study / "mine/mine.yaml").write_text(CONFIG)
    with (study / "mine/Snakefile").open("a") as rules:
        rules.write(f"\n\n{RULE}")
    counts = "results/mine/lengths/mine/beam/test/counts.json"
    run("snakemake", "all", "lengths", counts, "--cores", "1", "--configfile", "mine.yaml")
    assert sum(json.loads((study / "mine" / counts).read_text()).values()) == 2
    assert "count_lengths" in run("vitcapr", "why", counts)
    assert (study / "mine/results/mine/figures/lengths.png").stat().st_size
    assert "exact match" in run("vitcapr", "table", "--markdown", "results/mine/summary.csv")
    run("vitcapr", "caption", "photographs/3.png", "--captioner", "results/mine/captioners/mine")
    captions = "results/mine/captions/mine/beam/test/captions.json"
    entries = [{"image_id": f"{number}.png", "caption": "a dog"} for number in (3, 7)]
    (study / "mine/references.json").write_text(json.dumps({"annotations": entries}))
    run(
        "vitcapr", "evaluate", captions, "--references", "references.json", "--metrics", "exact_match", "--samples", "0"
    )
    assert "Number of layers of the GRU." in run("vitcapr", "config", "parameters")
    (study / "mine/wrong.yaml").write_text(CONFIG.replace("exact_match", "exact_macth").replace("layers", "leyers"))
    mistakes = run("vitcapr", "config", "check", "--configfile", "wrong.yaml", code=2)
    assert "exact_match" in mistakes
    assert "did you mean 'layers'" in mistakes


@pytest.mark.usefixtures("study")
def test_the_code_of_a_job_counts_the_plugins_that_it_uses() -> None:
    metric = {"plugins/exact_match.py", "plugins/_counting.py", "plugins/labels.yaml"}
    for stage, settings, counted in (
        ("score", {"metrics": {"caption": ["bleu", "exact_match"]}}, metric),
        ("summary", {}, {"plugins/labels.yaml"}),
        ("decode", {"metrics": {"caption": ["bleu"]}}, set()),
        ("train_captioner", {"captioner": {"architecture": "gru"}}, {"plugins/gru.py"}),
        ("train_captioner", {"captioner": {"architecture": "baseline"}}, set()),
        (
            "train_retriever",
            {"retriever": {"training": {"phases": [{"objective": {"kind": "dcl", "weight": 1.0}}]}}},
            {"plugins/losses/dcl.py"},
        ),
        ("extract", {"backbone": {"kind": "means"}}, {"plugins/means.py"}),
        ("extract", {"backbone": {"kind": "auto", "source": "means"}}, set()),
    ):
        code = job_code(f"vitcapr.stages.{stage}", settings)
        assert {name for name in code if name.startswith("plugins/")} == counted, stage


METRIC_JOB = ("vitcapr.stages.score", {"metrics": {"caption": ["exact_match"]}})
IMPORTS = {
    "plugins/_pkg/__init__.py": "from ._pkg import V",
    "plugins/_pkg/deep.py": "from ._pkg.deep import V",
    "plugins/_helper.py": "from vitcapr_plugins._helper import V",
    "plugins/means.py": "from .means import Means",
    "beside.py": "import beside",
    "package/part.py": "from package.part import V",
    "plugins/exact_match.txt": "",
    "plugins/exact_match/table.csv": "",
}
"""A file -> how the plugin imports it; data with its name count in any case."""


def test_an_edit_of_what_a_plugin_uses_counts(study: Path) -> None:
    for name, imported in IMPORTS.items():
        path = study / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_text("V = 1\n")
        with (study / "plugins/exact_match.py").open("a") as metric:
            metric.write(f"\n{imported}\n")
    before = job_code(*METRIC_JOB)
    for name in IMPORTS:
        (study / name).write_text((study / name).read_text() + "V = 2\n")
        hashing._code_of.cache_clear(), hashing.module_code.cache_clear(), hashing.release.cache_clear()
        after = job_code(*METRIC_JOB)
        part = name if name.startswith("plugins/") else name.removesuffix(".py").partition("/")[0]
        assert [key for key, value in after.items() if before[key] != value] == [part]
        before = after


def test_an_import_of_nothing_known_is_refused(study: Path) -> None:
    with (study / "plugins/exact_match.py").open("a") as metric:
        metric.write("\nimport nowhere_at_all\n")
    with pytest.raises(UserError, match="imports 'nowhere_at_all', which is neither a file of the study nor installed"):
        job_code(*METRIC_JOB)


def test_the_release_of_a_library_is_that_of_its_distribution(study: Path) -> None:
    path = study / "plugins" / "exact_match.py"
    path.write_text("import dateutil\n" + path.read_text())
    code = job_code("vitcapr.stages.score", {"metrics": {"caption": ["exact_match"]}})
    assert code["dateutil"] == importlib.metadata.version("python-dateutil")


def test_an_entry_point_is_a_plugin(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution that offers one part and a package of parts is found; no other folder is looked at."""
    site = study / "site"
    (site / "theirs").mkdir(parents=True)
    shutil.move(study / "plugins" / "means.py", site / "their_encoder.py")
    shutil.move(study / "plugins" / "losses", site / "theirs")
    (site / "theirs/__init__.py").touch()
    (site / "theirs-1.0.dist-info").mkdir()
    (site / "theirs-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    points = f"[{GROUP}]\ncolour = their_encoder\ntheirs = theirs\n"
    (site / "theirs-1.0.dist-info/entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(site)
    assert set(parts("ENCODER")) == {"colour"}
    assert parts("ENCODER")["colour"].load().image_size == (224, 224)
    settings = {"retriever": {"training": {"phases": [{"objective": Names("LOSS", Loss).read("dcl").canonical()}]}}}
    assert extension_parts(settings) == {"loss dcl": "theirs.losses.dcl"}


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("wrong.py", "LOSS = (", "SyntaxError"),
        ("wrong.py", "LOSS = 1\nimport nothing_here", "No module named 'nothing_here'"),
        ("losses/wrong.py", "", "has no attribute 'LOSS'"),
        ("wrong.py", "LOSS = 1", "must be a subclass of vitcapr.config.objective.Loss"),
        ("losses/exact_match.py", "LOSS = 1", "it must be one of"),
        ("losses/sigmoid.py", "LOSS = 1", "two parts are the loss 'sigmoid'"),
    ],
)
def test_a_wrong_file_is_one_line(study: Path, file: str, text: str, message: str) -> None:
    (study / "plugins" / file).write_text(text)
    with pytest.raises((UserError, ValueError), match=message):
        Names("LOSS", Loss).read("wrong")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def wrong(:\n", "the stage 'wrong' cannot be used: SyntaxError"),
        ("import nosuch\n", "the stage 'wrong' cannot be used: ModuleNotFoundError: No module named 'nosuch'"),
        (
            "open('words.txt')\n",
            "the stage 'wrong' reads 'words.txt', .*; name it 'wrong.txt'",
        ),
    ],
)
def test_a_wrong_stage_of_a_study_is_one_line(study: Path, text: str, message: str) -> None:
    (study / "words.txt").touch()
    (study / "plugins/stages/wrong.py").write_text(text)
    stage_modules.cache_clear()
    try:
        with pytest.raises(UserError, match=message):
            import_own_stages()
    finally:
        (study / "plugins/stages/wrong.py").unlink()
        stage_modules.cache_clear()


def test_data_with_the_name_of_a_part_may_be_read(study: Path) -> None:
    part = study / "plugins/losses/mine.py"
    (study / "plugins/losses/mine.txt").touch()
    part.write_text("from pathlib import Path\nPath(__file__).with_name('mine.txt').read_text()\n")
    check_reads(part, "it")
    (study / "plugins/shared.txt").touch()
    part.write_text("from pathlib import Path\n(Path(__file__).parents[1] / 'shared.txt').read_text()\n")
    with pytest.raises(UserError, match=r"it reads 'shared.txt'"):
        check_reads(part, "it")
    (study / "captions.csv").touch()
    part.write_text(f"def read(folder):\n    return (folder / 'captions.csv').read_text(), {'ä' * 250!r}\n")
    check_reads(part, "it")  # That of a folder which the part is given.
