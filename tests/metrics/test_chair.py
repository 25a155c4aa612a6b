"""CHAIR: mentions of COCO's objects, and the share of them that is not in the image."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.metrics.test_commands import folder, run_score
from vitcapr.api.evaluation import evaluate
from vitcapr.api.pairs_check import check_instances
from vitcapr.errors import UserError
from vitcapr.formats.captions import read_instances
from vitcapr.metrics.captions.chair import CATEGORIES, chair, mentioned

__all__ = ["folder"]


@pytest.mark.parametrize(
    ("caption", "categories"),
    [
        ("Two men and three women ride bikes past a bus.", ["person", "person", "bicycle", "bus"]),
        ("A person's dog, dogs and puppies", ["person", "dog", "dog", "dog"]),
        ("a hot dog and a teddy bear by a stop sign", ["hot dog", "teddy bear", "stop sign"]),
        ("hot dogs, wine glasses and traffic lights", ["hot dog", "wine glass", "traffic light"]),
        ("a baby elephant beside a baby", ["elephant", "person"]),
        ("a passenger train on the train tracks", ["train"]),
        ("an adult animal at home plate", []),
        ("the seat of a toilet", ["toilet"]),
        ("a toilet seat and a chair", ["toilet", "chair"]),
        ("a seat and a table", ["chair", "dining table"]),
        ("geese, mice, knives, calves, buffaloes and children", ["bird", "mouse", "knife", "cow", "cow", "person"]),
        ("giraffes and skis and scissors", ["giraffe", "skis", "scissors"]),
        ("he cares for the busy ballet", []),
        ("", []),
    ],
)
def test_what_a_caption_names(caption: str, categories: list[str]) -> None:
    assert mentioned(caption) == categories


def test_every_category_is_named_by_its_own_name() -> None:
    assert len(CATEGORIES) == 80
    assert all(mentioned(f"a {category}") == [category] for category in CATEGORIES)


def test_shares_of_mentions_and_of_captions() -> None:
    captions = ["a dog and a cat and a dog", "a man on a bench", "the blue sky", "a dog"]
    found = chair(captions, [{"dog"}, {"person"}, {"car"}, {"dog"}])
    assert found["chair_i"].value == pytest.approx(2 / 6)
    assert found["chair_i"].n == 3
    assert found["chair_s"].value == pytest.approx(2 / 4)
    assert found["chair_s"].per_image.tolist() == [1, 1, 0, 0]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """Image 1 has a dog; its references name a bench. Image 2 has nothing that is annotated. Image 3 has a car."""
    instances = {
        "images": [{"id": 1, "file_name": "1.jpg"}, {"id": 2}, {"id": 3}],
        "annotations": [{"image_id": 1, "category_id": 18, "bbox": [0, 0, 1, 1]}, {"image_id": 3, "category_id": 3}],
        "categories": [{"id": 18, "name": "dog", "supercategory": "animal"}, {"id": 3, "name": "car"}],
    }
    texts = {1: ["a dog", "animal by a bench"], 2: ["the sky", "clouds"], 3: ["an automobile", "a street"]}
    content = {
        "instances": instances,
        "references": {"annotations": [{"image_id": n, "caption": text} for n in texts for text in texts[n]]},
        "results": [
            {"image_id": 1, "caption": "a puppy and a cat on a bench"},
            {"image_id": 2, "caption": "a man under a sky"},
            {"image_id": 3, "caption": "a taxi"},
        ],
        "other": [{"image_id": n, "caption": caption} for n, caption in ((1, "a dog"), (2, "a kite"), (3, "a car"))],
    }
    for name, values in content.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(values))
    return {name: tmp_path / f"{name}.json" for name in content}


def test_objects_are_those_of_instances_and_references(files: dict[str, Path]) -> None:
    """Named: dog, cat, bench; person; car. The cat and the person are not there."""
    found = evaluate(
        files["results"], files["references"], metrics=["rouge_l"], instances=files["instances"], samples=50
    )
    scores = found.scores.set_index("metric")
    assert scores.loc["chair_i", "value"] == pytest.approx(2 / 5)
    assert scores.loc["chair_s", "value"] == pytest.approx(2 / 3)
    assert scores.loc["chair_i", "low"] < 2 / 5 < scores.loc["chair_i", "high"]
    assert "chair:instances+references" in found.protocol
    assert found.per_image["chair_i"].tolist() == pytest.approx([1 / 3, 1, 0])


def test_files_of_the_same_image_are_joined(files: dict[str, Path], tmp_path: Path) -> None:
    content = json.loads(files["instances"].read_text())
    content["annotations"] = [{"image_id": 1, "category_id": 3}]
    (tmp_path / "more.json").write_text(json.dumps(content))
    found = read_instances([files["instances"], tmp_path / "more.json"])
    assert found == {"1": {"dog", "car"}, "2": set(), "3": {"car"}}


def test_objects_are_found_by_file_names(files: dict[str, Path], tmp_path: Path) -> None:
    """The instances number the images anew: 1 is what the references call 3."""
    content = json.loads(files["instances"].read_text())
    for image, (number, file) in zip(content["images"], ((1, "c.jpg"), (2, "b.jpg"), (3, "a.jpg")), strict=True):
        image |= {"id": number, "file_name": file}
    path = tmp_path / "renumbered.json"
    path.write_text(json.dumps(content))
    asked = {"1": "a.jpg", "2": "b.jpg", "3": "c.jpg"}
    assert read_instances([path], asked) == {"1": {"car"}, "2": set(), "3": {"dog"}}


def test_objects_of_other_images_stop() -> None:
    names = sorted(CATEGORIES)[:40]
    objects = {str(row): frozenset([names[row % 40], names[row * 7 % 40]]) for row in range(200)}
    references = {image: [f"a {min(here)} near a wall"] for image, here in objects.items()}
    assert "belong together" in check_instances(objects, references)
    shifted = [*list(objects.values())[1:], objects["0"]]
    for others, words in ((shifted, "they fit shifted by one"), (sorted(shifted, key=min), "no better than chance")):
        with pytest.raises(UserError, match=words):
            check_instances(dict(zip(objects, others, strict=True)), references)


def test_captions_that_name_nothing_have_no_share(files: dict[str, Path]) -> None:
    plain = {1: "grey", 2: "the sky", 3: "a street"}
    found = evaluate(plain, files["references"], metrics=[], instances=files["instances"], samples=20)
    scores = found.scores.set_index("metric")
    assert scores["value"].isna().tolist() == [True, False]
    assert scores.loc["chair_s", "value"] == 0


def test_mistakes_are_one_line(files: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="CHAIR needs the instance annotations"):
        evaluate(files["results"], files["references"], metrics=["chair"])
    with pytest.raises(UserError, match="not instance annotations of COCO"):
        read_instances([files["references"]])
    content = json.loads(files["instances"].read_text())
    content["images"] = content["images"][:2]
    (tmp_path / "few.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"names an image or a category .*image 3"):
        read_instances([tmp_path / "few.json"])
    content["annotations"] = content["annotations"][:1]
    (tmp_path / "few.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match=r"not in the instance annotations \(image 3\)"):
        evaluate(files["results"], files["references"], metrics=[], instances=tmp_path / "few.json")


def test_the_stage_reads_the_files_of_the_configuration(folder: Path) -> None:
    instances = {
        "images": [{"id": "one.png"}, {"id": "two.png"}],
        "annotations": [],
        "categories": [{"id": 1, "name": "dog"}],
    }
    (folder / "instances.json").write_text(json.dumps(instances))
    metrics = {"caption": ["chair"], "instances": [str(folder / "instances.json")], "bootstrap_samples": 10}
    found = run_score(folder, settings={"metrics": metrics})
    # "a dog runs" and its references name a dog; "cats and a dog" names a cat, which is there, and a dog, which is not.
    assert found["chair_i"]["value"] == pytest.approx(1 / 3)
    assert found["chair_s"]["value"] == pytest.approx(1 / 2)
