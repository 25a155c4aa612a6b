"""Three stores that commit fce7fa02 filled, against the code of today: their features may have cost GPU days.

``stores-of-fce7fa02.tar.xz`` has the data set, the stores and their seals as that commit wrote them, by
``Experiment.run`` and ``extract_text`` with the settings below.
"""

import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.checkpoints import run_features, save_bert, save_checkpoint, tiny_vit
from vitcapr.config.features import BackboneConfig, TextEncoderConfig
from vitcapr.encoders.image_recipe import image_recipe
from vitcapr.encoders.text_encoders import TextRecipe
from vitcapr.formats.manifest import read_manifest
from vitcapr.store.fill import StorePlan
from vitcapr.store.layout import Rows
from vitcapr.store.reader import open_features

CPU = torch.device("cpu")
IMAGES = {"images": {"store_dtype": "float16"}, "layers": {"store_dtype": "int8", "layers": [1, 2], "patches": 1}}
TEXTS = {"dtype": "float32", "store_dtype": "float16", "max_length": 16}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("old")
    with tarfile.open(Path(__file__).with_name("stores-of-fce7fa02.tar.xz")) as archive:
        archive.extractall(root, filter="data")
    save_checkpoint(tiny_vit(), root / "backbones/noise-vit")
    save_bert(root / "backbones/words", ["a", "dog", "runs"])
    return root


def recipe_of_today(name: str) -> dict[str, Any]:
    if name == "texts":
        config = TextEncoderConfig.model_validate({"source": "words", **TEXTS})
        recipe = TextRecipe(device=CPU, **config.values("store_dtype"))
        return {**recipe.attributes, "store_dtype": config.store_dtype}
    backbone = BackboneConfig.model_validate({"source": "noise-vit", "dtype": "float32", **IMAGES[name]})
    return image_recipe("noise-vit", CPU, name="noise-vit", **backbone.values("source")).attributes


@pytest.mark.parametrize("name", ["images", "layers", "texts"])
def test_an_old_store_is_read_and_differs_in_the_digest_of_its_code_alone(
    old: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it keeps its fingerprint but for the code, and an audit finds its rows equal to those of today's code."""
    monkeypatch.setenv("VITCAPR_BACKBONES", str(old / "backbones"))
    folder = "text_features/words" if name == "texts" else "features/vit"
    sealed, data = old / "results" / name / folder / "manifest.json", read_manifest(old / "data/manifest.json")
    rows = Rows.of_captions(data) if name == "texts" else Rows.of_images(data)
    with open_features(sealed) as store:
        plan = StorePlan(Path(), rows, recipe_of_today(name), store.chunk, store.attributes["code"])
        assert plan.fingerprint == store.fingerprint
    assert run_features("audit", sealed, "--data", old / "data", "--seed", 0).startswith("equal")
