"""croissant.json is read by MLCommons' own library."""

import json
import logging
from pathlib import Path
from typing import Any

import mlcroissant
import pytest

from tests.data_sets import write_data_set
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.reading import parse
from vitcapr.errors import UserError
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.describe_data import DescribeDataSettings, describe_data


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    captions = [("a", "en", "A dog."), ("a", "zh", "狗"), ("ä", "en", "Two cats.")]
    return write_data_set(tmp_path / "data", {"a": "train", "ä": "test"}, captions, "table")


def described(manifest: Path, **terms: str) -> Path:
    path = manifest.with_name("croissant.json")
    settings = {"name": "mine", "terms": terms}
    run_stage(describe_data, manifest=manifest, croissant=path, settings=settings)
    return path


def records(data: mlcroissant.Dataset, table: str) -> list[dict[str, Any]]:
    def text(value: Any) -> Any:
        return value.decode() if isinstance(value, bytes) else value

    return [
        {key.removeprefix(f"{table}/"): text(value) for key, value in record.items()} for record in data.records(table)
    ]


def test_its_records_are_the_tables(manifest: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    path = described(manifest, licence="CC BY 4.0", source="https://example.org/mine")
    data = mlcroissant.Dataset(str(path))
    assert not data.metadata.ctx.issues.errors
    assert "@context" not in caplog.text  # The context is the standard one.
    images = records(data, "images")
    assert [(row["image_id"], row["split"], row["width"]) for row in images] == [("a", "train", 4), ("ä", "test", 4)]
    captions = records(data, "captions")
    assert [row["text"] for row in captions] == ["A dog.", "狗", "Two cats."]
    assert [row["image_id"] for row in captions] == ["a", "a", "ä"]
    assert (data.metadata.name, data.metadata.license) == ("mine", ["CC BY 4.0"])
    assert data.metadata.url == "https://example.org/mine"
    assert "2 images (1 test, 1 train) with 3 captions in en, zh" in str(data.metadata.description)


def test_what_is_not_known_is_left_out(manifest: Path) -> None:
    content = json.loads(described(manifest, source="my own camera").read_text(encoding="utf-8"))
    assert not {"license", "url"} & content.keys()
    assert "Source: my own camera." in content["description"]


def test_it_lies_beside_the_manifest(manifest: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="belongs beside the manifest"):
        run_stage(describe_data, manifest=manifest, croissant=tmp_path / "croissant.json")


@pytest.mark.parametrize(
    ("data", "licence", "source"),
    [
        ({"dataset": "scenes", "licence": "CC0-1.0"}, "CC0-1.0", "rendered by vitcapr"),
        ({"dataset": "table", "table": {"images": "x"}, "source": "my camera"}, None, "my camera"),
        ({"dataset": "flickr8k", "flickr8k": {"images": "a", "text": "b"}}, "research", "jbrownlee"),
        ({"dataset": "pairs", "pairs": {"source": "scenes"}}, "MIT", "rendered by vitcapr"),
        ({"dataset": "pairs", "pairs": {"table": "x.csv"}}, None, None),
    ],
)
def test_the_terms_are_those_given_or_those_known(
    data: dict[str, Any], licence: str | None, source: str | None
) -> None:
    config = parse(ExperimentConfig, {"experiment": "mine", "data": data}, "x.yaml")
    settings = DescribeDataSettings.from_config(config, None)
    assert settings.name == "mine"
    for found, expected in ((settings.terms.licence, licence), (settings.terms.source, source)):
        assert (found is None) == (expected is None)
        assert (expected or "") in (found or "")
