"""The files that descend from a photograph."""

from pathlib import Path

import pytest

from tests.extensions.publications.conftest import ROOT
from vitcapr.errors import UserError
from vitcapr.experiment.copies import record_copy
from vitcapr.extensions.publications.descent import CONTAINS, COPIED, DERIVED, decoded, trace
from vitcapr.formats.manifest import read_manifest


def traced(study: Path, split: str) -> dict[str, dict[str, str]]:
    """Place -> how, by class, for the first image of a split."""
    images = read_manifest(study / ROOT / "data").images
    image = images["image_id"][images["split"] == split].iloc[0]
    found: dict[str, dict[str, str]] = {CONTAINS: {}, DERIVED: {}, COPIED: {}}
    for one in trace(image, study / "results"):
        found[one.kind][one.place.removeprefix(f"{study / ROOT}/")] = one.how
    return found


def test_an_image_of_the_test_split_trains_nothing(study: Path, publication: Path) -> None:
    found = traced(study, "test")
    contains = {"data/images.parquet", "data/captions.parquet", "captions/a/beam/test/captions.json"}
    contains |= {"metrics/a/greedy/test/per_image.parquet"}
    assert contains <= found[CONTAINS].keys()
    assert any(how.startswith("its vector, row") for how in found[CONTAINS].values())
    assert found[CONTAINS]["embeddings/r/test/embeddings.npz"].startswith("its numbers, row ")
    assert "summary.csv" in found[DERIVED]
    assert "captioners/a/best.safetensors" not in found[DERIVED]
    assert str(publication) in found[COPIED]


def test_an_image_of_the_training_split_is_in_every_model(study: Path) -> None:
    found = traced(study, "train")
    assert {"captioners/a/best.safetensors", "retrievers/r/best.safetensors", "summary.csv"} <= found[DERIVED].keys()
    assert {"captions/a/beam/test/captions.json", "embeddings/r/test/embeddings.npz"} <= found[DERIVED].keys()
    assert "text/tokens.npz" in found[CONTAINS]


def test_pushed_copies_are_listed_where_they_descend_from_the_image(study: Path) -> None:
    root, said = study / ROOT, list[str]()
    record_copy(root / "captioners/a/card.json", "hf://me/captioner", "5f02" * 16, said.append)
    record_copy(root / "features/vit/manifest.json", "s3://me/store", "0e11" * 16, said.append)
    pushed = traced(study, "train")[COPIED]
    assert pushed["hf://me/captioner"].startswith("captioners/a/card.json, 20")
    assert pushed["s3://me/store"].endswith("digest 0e110e110e110e11")
    assert "hf://me/captioner" not in traced(study, "test")[COPIED]
    assert "s3://me/store" in traced(study, "test")[COPIED]
    assert said == []


def test_an_unknown_image_is_an_error(study: Path) -> None:
    with pytest.raises(UserError, match="no data set here has the image 'nobody'"):
        list(trace("nobody", study / "results"))


def test_packed_files_are_searched(study: Path) -> None:
    assert any(b"scene-" in part for part in decoded(study / ROOT / "data/images.parquet"))
