"""Claims of captions counted by hand."""

import json
import math
from pathlib import Path

import pytest

from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.extensions.demo.dataset import write_scenes
from vitcapr.extensions.demo.settings import ScenesConfig
from vitcapr.extensions.demo.stages.check_claims import check_claims
from vitcapr.extensions.demo.statements import checked_claims, claim_accuracy, read_caption
from vitcapr.formats.claims import read_claims
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.progress import Reporter

TRUTH = "On the grass, three small striped red balls are to the left of a big white house."


def values(*captions: str) -> dict[str, float]:
    claims = [read_caption(caption) for caption in captions]
    measures = claim_accuracy(claims, [read_caption(TRUTH)] * len(claims))
    return {name: measure.value for name, measure in measures.items()}


def test_the_truth_is_true() -> None:
    assert set(values(TRUTH).values()) == {1.0}


@pytest.mark.parametrize(
    ("caption", "wrong", "recall"),
    [
        # The claims: two objects, two counts, two sizes, two colours, a texture, the relation and the place.
        ("four small striped red balls are left of a big white house on the grass", {"counts": 1 / 2}, 10 / 11),
        ("three small dotted red balls are left of a big black house", {"textures": 0, "colors": 1 / 2}, 8 / 11),
        ("three red balls above a house in the snow", {"relations": 0, "places": 0}, 5 / 11),
        ("three red balls left of a tree", {"objects": 1 / 2, "relations": 0}, 3 / 11),
        # The second house is one too many.
        ("a white house and a white house", {"objects": 1 / 2}, 3 / 11),
    ],
)
def test_a_wrong_claim_counts_in_its_kind(caption: str, wrong: dict[str, float], recall: float) -> None:
    found = values(caption)
    assert found["claims_true"] == 0
    assert found["claim_recall"] == pytest.approx(recall)
    for kind in ("objects", "counts", "sizes", "textures", "colors", "relations", "places"):
        value = found[f"claims_{kind}"]
        assert value == pytest.approx(wrong[kind]) if kind in wrong else (value == 1 or math.isnan(value))


def test_an_omitted_claim_is_not_wrong() -> None:
    found = values("a big white house")
    assert found["claims_true"] == 1
    assert found["claim_recall"] == pytest.approx(4 / 11)


def test_saying_nothing_is_not_true() -> None:
    assert values("on the grass")["claims_true"] == 0


@pytest.mark.parametrize(
    ("caption", "wrong"),
    [
        ("four small striped red balls are left of a big white house", [("four", "three")]),
        ("On the snow, two balls with dots!", [("two", "three"), ("with dots!", "striped"), ("On the snow,", "grass")]),
        (
            "a tree and a house with three red balls between them",
            [("tree", None), ("between them", "ball left house")],
        ),
        ("three balls are to the right of a house", [("to the right of", "ball left house")]),
        ("İ: two  balls", [("two", "three")]),
    ],
)
def test_a_wrong_claim_knows_its_words(caption: str, wrong: list[tuple[str, str | None]]) -> None:
    claims = checked_claims(read_caption(caption), read_caption(TRUTH))
    words = caption.split()
    assert [(" ".join(words[place] for place in each), true) for *_, true, right, each in claims if not right] == wrong


def check(folder: Path, manifest: Path) -> None:
    captions, metrics, claims = (folder / name for name in ("captions.json", "scores.json", "claims.json"))
    run_stage(check_claims, captions=captions, manifest=manifest, split="test", metrics=metrics, claims=claims)


def test_the_command(tmp_path: Path) -> None:
    with Reporter() as reporter:
        scenes = ScenesConfig(images=20, size=32, validation=0.1, test=0.2)
        manifest = write_scenes(tmp_path, scenes, 1, reporter)
    data = read_manifest(manifest)
    rows = data.captions[(data.captions["split"] == "test") & (data.captions["language"] == "en")]
    # The second reference of every picture, and for the first picture one of another.
    written = dict(rows.groupby("image_id").nth(1)[["image_id", "text"]].to_numpy())
    first, other = list(written)[:2]
    written[first] = written[other]
    captions = [{"image_id": image, "caption": text} for image, text in written.items()]
    (tmp_path / "captions.json").write_text(json.dumps(captions), encoding="utf-8")
    check(tmp_path, manifest)
    metrics = json.loads((tmp_path / "scores.json").read_text())["metrics"]
    assert metrics["claims_true"]["value"] == pytest.approx(1 - 1 / len(written))
    assert metrics["claims_true"]["n"] == len(written)
    claims = read_claims(tmp_path / "claims.json")
    assert [image for image, made in claims.items() if not all(claim.right for claim in made)] == [first]


def test_another_data_set_is_refused(tmp_path: Path) -> None:
    manifest = write_data_set(tmp_path, {"1": "test"}, [("1", "en", "a dog")])
    with pytest.raises(UserError, match="checked on scenes, not on toys"):
        check(tmp_path, manifest)
