"""What a stage takes from the configuration: the files that a data set reads, the seed of a retriever."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vitcapr.config.dual_encoder import RetrieverConfig
from vitcapr.config.experiment import DataConfig
from vitcapr.config.features import BackboneConfig, FeaturesConfig
from vitcapr.config.reading import parse
from vitcapr.pipeline.stage import find_stage
from vitcapr.stages.extract import images_in_chunk
from vitcapr.stages.train_retriever import TrainRetrieverSettings


def sources(dataset: str, **data: Any) -> dict[str, Path]:
    config = SimpleNamespace(data=parse(DataConfig, {"dataset": dataset, **data}, where="here"))
    settings: Any = find_stage(getattr(config.data, dataset).stage).settings
    return dict(settings.from_config(config, None).user_files())


def test_files_are_those_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "photos").mkdir()
    monkeypatch.setenv("VITCAPR_DATA", str(tmp_path))
    assert sources("flickr30k", flickr30k={"images": "photos", "lists": "lists.json"}) == {
        "data.flickr30k.images": tmp_path / "photos",
        "data.flickr30k.lists": Path("lists.json"),
    }


def test_lists_beside_a_captions_file_of_flickr8k_are_read_too(tmp_path: Path) -> None:
    for name in ("captions.txt", "Flickr_8k.devImages.txt", "other.txt"):
        (tmp_path / name).touch()
    named = {"images": "photos", "text": str(tmp_path / "captions.txt")}
    beside = {"data.flickr8k.text/Flickr_8k.devImages.txt": tmp_path / "Flickr_8k.devImages.txt"}
    of_file = {f"data.flickr8k.{key}": Path(name) for key, name in named.items()} | beside
    assert sources("flickr8k", flickr8k=named) == of_file
    folder = {"images": "photos", "text": str(tmp_path)}
    assert sources("flickr8k", flickr8k=folder).keys() == {"data.flickr8k.images", "data.flickr8k.text"}


FLICKR8K = {"flickr8k": {"images": "photos", "text": "text"}}


@pytest.mark.parametrize(
    ("dataset", "data", "read"),
    [
        ("coco", {"coco": {"images": "photos", "annotations": ["a.json", "b.json"]}},
         {"data.coco.images": "photos", "data.coco.annotations.0": "a.json", "data.coco.annotations.1": "b.json"}),
        ("coco", {"coco": {"images": "photos", "karpathy": "k.json"}},
         {"data.coco.images": "photos", "data.coco.karpathy": "k.json"}),
        ("pairs", {"pairs": {"source": "table", "table": "pairs.csv"}}, {"data.pairs.table": "pairs.csv"}),
        ("pairs", {"pairs": {"source": "flickr8k", "chinese": "zh.txt"}, **FLICKR8K},
         {"data.flickr8k.images": "photos", "data.flickr8k.text": "text", "data.pairs.chinese": "zh.txt"}),
        ("pairs", {"pairs": {"source": "scenes"}}, {}),
        ("scenes", {}, {}),
    ],
)  # fmt: skip
def test_the_files_that_a_data_set_reads(dataset: str, data: dict[str, Any], read: dict[str, str]) -> None:
    assert sources(dataset, **data) == {key: Path(path) for key, path in read.items()}


RAW = {"kind": "features", "encoder": "bert", "head": "none"}


def test_a_retriever_without_weights_to_learn_has_no_phases() -> None:
    raw = {"backbone": "vit", "image": {"head": "none"}, "text": RAW, "training": {"phases": []}}
    assert not parse(TrainRetrieverSettings, {"retriever": raw}, where="").retriever.learns
    pooled = {**raw, "image": {"head": "none", "pool": "attention"}, "training": {}}
    assert parse(TrainRetrieverSettings, {"retriever": pooled}, where="").retriever.learns


@pytest.mark.parametrize(("own", "used"), [(0, 0), (None, 7)])
def test_a_models_own_seed_comes_before_the_experiments(own: int | None, used: int) -> None:
    assert settings_of(own).seed == used


def test_an_own_seed_that_is_the_experiments_is_no_other_training() -> None:
    assert settings_of(7).canonical() == settings_of(None).canonical()
    assert settings_of(8).canonical() != settings_of(None).canonical()


def settings_of(own: int | None) -> TrainRetrieverSettings:
    """Those of a job of an experiment with seed 7."""
    config = SimpleNamespace(seed=7, retrievers={"r": RetrieverConfig(backbone="vit", seed=own)})
    return TrainRetrieverSettings.from_config(config, SimpleNamespace(retriever="r"))


def test_vectors_alone_have_larger_chunks() -> None:
    keys = ({}, {"patches": 7}, {"patches": "none"}, {"output": "aligned"})
    backbones = [parse(BackboneConfig, {"source": "x", **each}, where="") for each in keys]
    assert [images_in_chunk(FeaturesConfig(), each) for each in backbones] == [64, 64, 1024, 1024]
    assert {images_in_chunk(FeaturesConfig(chunk=8), each) for each in backbones} == {8}
