"""Models on features of other programs: which arrays, which widths, which grid."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.checkpoints import run_features
from tests.commands.stores import train
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.model import CARD, read_card

RESULTS = Path("results/toy")
PHASES = {"phases": [{"epochs": 1, "batch_images": 4}], "precision": "float32"}
ATTENTION: dict[str, Any] = {"embedding_dim": 4, "hidden_dim": 6, "training": PHASES}


@pytest.fixture(autouse=True)
def _copy(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shutil.copytree(project, tmp_path / "project"))
    monkeypatch.setenv("VITCAPR_STORES", "results/stores")


def imported(*options: str, **widths: int) -> Path:
    """A store with vectors or four patches of these widths."""
    ids = read_manifest(RESULTS / "data/manifest.json").image_table.column("image_id").tolist()
    draw = np.random.default_rng(0)
    shapes = {name: (len(ids), 4, width) if name == "patches" else (len(ids), width) for name, width in widths.items()}
    np.savez("f.npz", ids=np.array(ids), **{name: draw.normal(size=shape) for name, shape in shapes.items()})
    output = run_features("import", "f.npz", "--data", RESULTS / "data/manifest.json", *options)
    return Path(output.splitlines()[0].removeprefix("sealed: "))


def captioner(features: Path, **settings: Any) -> Path:
    return train("captioner", features, Path("captioner"), **ATTENTION, **settings)


def test_patches_alone_train_what_reads_patches_alone() -> None:
    folder = captioner(imported(patches=6), init_from_cls=False)
    assert read_card(folder / CARD)["architecture"]["feature_dim"] == 6
    with pytest.raises(UserError, match="has no 'cls', only patches"):
        captioner(imported(patches=6))


def test_a_model_reads_each_array_at_its_own_width() -> None:
    features = imported(patches=6, cls=3)
    widths = {"feature_dim": 6, "cls_dim": 3}
    assert widths.items() <= read_card(captioner(features) / CARD)["architecture"].items()
    assert read_card(captioner(features, architecture="baseline") / CARD)["architecture"]["feature_dim"] == 3
    image = {"pool": "cls_mean"}
    train("retriever", features, Path("retriever"), image=image, training=PHASES)
