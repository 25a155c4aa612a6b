"""A whole experiment, very small, as its rules lay it out: photographs, features, a captioner, two retrievers."""

import shutil
from pathlib import Path

import pytest

import vitcapr
from tests.checkpoints import extract_text, save_bert, save_checkpoint, tiny_vit
from tests.commands.stores import train
from tests.data_sets import write_data_set, write_noise

IMAGES = 12
THINGS, STARTS = ["dog", "cat", "boat", "man", "girl", "bird"], ("A", "The big")


def write_backbones(backbones: Path) -> None:
    save_checkpoint(tiny_vit(num_hidden_layers=1, intermediate_size=8), backbones / "noise-vit")
    save_bert(backbones / "tiny-bert", ["a", "big", *THINGS], intermediate_size=8)


def write_photographs(data: Path, pictures: Path) -> None:
    """Twelve images of noise, "photo 00.png" and so on, with two captions each."""
    splits = {f"{number:02d}": ("train", "train", "validation", "test")[number % 4] for number in range(IMAGES)}
    file = "photo {}.png".format
    write_noise(pictures, [*map(file, splits)])
    captions = [(name, "en", f"{a} {thing}.") for name, thing in zip(splits, 2 * THINGS, strict=True) for a in STARTS]
    write_data_set(data, splits, captions, "toy", pictures, file)


@pytest.fixture(scope="session")
def _experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    results = root / "results" / "toy"
    data = results / "data"
    write_backbones(root / "backbones")
    write_photographs(data, root / "photos")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VITCAPR_BACKBONES", str(root / "backbones"))
        patch.setenv("VITCAPR_STORES", str(root / "results/stores"))
        vit, mirrored = (
            vitcapr.extract(data, "noise-vit", results / "features" / name, dtype="float32", chunk=4, mirror=mirror)
            for name, mirror in (("vit", False), ("mirrored", True))
        )
        exact = {"dtype": "float32", "store_dtype": "float32"}
        bert = extract_text(data / "manifest.json", "tiny-bert", results / "text_features/bert", **exact)
        words = {"vocabulary": results / "text/vocabulary.json", "tokens": results / "text/tokens.npz"}
        vitcapr.run("vocabulary", {"text": {"vocabulary": {"min_count": 1}}}, manifest=data, **words)
        patch.chdir(root)
        phases = {"phases": [{"epochs": 3, "batch_images": 4, "learning_rate": 0.01}], "precision": "float32"}
        for kind in ("patch_attention", "baseline"):
            sizes = {"architecture": kind, "embedding_dim": 4, "hidden_dim": 6}
            train("captioner", vit, results / "captioners" / kind, training=phases, **sizes)
        bag = {"word_dim": 4, "head": {"kind": "residual", "hidden_dim": 4}}
        views = {"augmented_views": [mirrored]}
        for kind, files, more in (
            ("words", {}, {"text": bag}),
            ("bert", {"text_features": bert}, {"text": {"kind": "features", "encoder": "bert"}}),
            ("augmented_views", views, {"text": bag, "augmented_views": ["mirrored"]}),
        ):
            output = results / "retrievers" / kind
            train("retriever", vit, output, files, embedding_dim=5, training=phases, **more)
    return root


@pytest.fixture
def project(_experiment: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that a user stands in: ``photos/``, ``results/toy/`` and the folder of backbones."""
    monkeypatch.chdir(_experiment)
    monkeypatch.setenv("VITCAPR_BACKBONES", str(_experiment / "backbones"))
    return _experiment


@pytest.fixture(scope="module")
def _copy(_experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(_experiment, tmp_path_factory.mktemp("copy") / "project"))


@pytest.fixture
def copied_project(_copy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, a copy for the tests of one module, which add to it."""
    monkeypatch.chdir(_copy)
    monkeypatch.setenv("VITCAPR_BACKBONES", str(_copy / "backbones"))
    monkeypatch.setenv("VITCAPR_STORES", "results/stores")
    return _copy
