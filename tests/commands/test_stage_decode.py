"""``vitcapr stage decode`` as a user runs it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.stores import write_store
from tests.data_sets import write_data_set
from tests.models.untrained import architecture, untrained
from vitcapr.errors import UserError
from vitcapr.formats.model import write_model
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.decode import decode

PLAIN = {"decoding": {"beam_size": 3, "n_best": 2, "max_length": 6, "min_length": 1, "batch_images": 2}}


@pytest.fixture
def files(project: Path, tmp_path: Path) -> dict[str, Any]:
    results = project / "results/toy"
    return {
        "features": results / "features/vit/manifest.json",
        "manifest": results / "data/manifest.json",
        "vocabulary": results / "text/vocabulary.json",
        "captioner": results / "captioners/patch_attention",
        "split": "test",
        "captions": tmp_path / "captions.json",
        "settings": PLAIN,
    }


def test_captions_and_attention(files, tmp_path):
    run_stage(decode, **files, attention=tmp_path / "attention.npz", log=tmp_path / "log")
    entries = json.loads(files["captions"].read_text())
    assert [entry["image_id"] for entry in entries] == ["03", "07", "11"]
    words = Vocabulary.read(files["vocabulary"]).words
    for entry in entries:
        assert entry["caption"] == " ".join(entry["tokens"])
        assert 1 <= len(entry["tokens"]) <= 6
        assert set(entry["tokens"]) <= set(words[4:])
        assert len(entry["token_log_probs"]) == len(entry["tokens"]) + 1
        assert entry["log_prob"] == pytest.approx(sum(entry["token_log_probs"]), abs=1e-4)
        first, second = entry["candidates"]
        assert {name: entry[name] for name in first} == first
        assert first["score"] >= second["score"]
    with np.load(tmp_path / "attention.npz") as stored:
        assert stored["offsets"].tolist() == np.cumsum([0, *(len(entry["tokens"]) for entry in entries)]).tolist()
        assert stored["image_row"].tolist() == [3, 7, 11]
        assert stored["grid"].tolist() == [2, 2]
        np.testing.assert_allclose(stored["weights"].astype(float).sum(1), 1, atol=5e-3)
    assert "3/3 captions" in (tmp_path / "log").read_text()


def test_samples_are_the_same_in_batches_of_any_size(files, tmp_path):
    """And n_best is not bound by the beam."""

    def written(**changes):
        sampling = {"temperature": 0.9, "top_p": 0.95, **changes.pop("sampling", {})}
        settings = {"decoding": {"n_best": 9, "max_length": 6, "sampling": sampling, **changes}}
        attention = tmp_path / "attention.npz"
        run_stage(decode, **{**files, "settings": settings}, attention=attention, log=tmp_path / "log")
        with np.load(attention) as stored:
            return json.loads(files["captions"].read_text()), stored["offsets"].tolist()

    found, offsets = written()
    assert "3 images, 9 samples" in (tmp_path / "log").read_text()
    assert offsets == np.cumsum([0, *(len(entry["tokens"]) for entry in found)]).tolist()
    assert len({str(entry["candidates"]) for entry in found}) == 3
    drawn = [[one["tokens"] for one in entry["candidates"]] for entry in found]
    assert all(5 < len(image) <= 9 for image in drawn)
    for size in (1, 3):
        again, _ = written(batch_images=size)
        assert [[one["tokens"] for one in entry["candidates"]] for entry in again] == drawn
    other, _ = written(sampling={"seed": 1})
    assert [[one["tokens"] for one in entry["candidates"]] for entry in other] != drawn


def test_inputs_that_do_not_belong_together_are_an_error(files, tmp_path):
    def message(**changes):
        with pytest.raises(UserError) as caught:
            run_stage(decode, **{**files, **changes})
        return str(caught.value)

    def captioner(name, *sizes):
        weights = untrained("patch_attention", *sizes).state_dict()
        write_model(tmp_path / name, weights, {"architecture": architecture("patch_attention", *sizes)})
        return tmp_path / name

    words = len(Vocabulary.read(files["vocabulary"]))
    assert f"has 20 words and the vocabulary {words}" in message(captioner=captioner("words", 20, 8))
    assert "width 3, these are 8" in message(captioner=captioner("width", words, 3))
    arrays = {"patches": np.zeros((12, 4, 8), np.float16), "cls": np.zeros((12, 8), np.float16)}
    gridless = write_store(tmp_path, arrays, [f"{number:02d}" for number in range(12)])
    attending = {"captioner": captioner("same", words, 8), "attention": tmp_path / "attention.npz"}
    assert "have no patch grid" in message(features=gridless, **attending)
    plain = {"captioner": files["captioner"].with_name("baseline"), "attention": tmp_path / "attention.npz"}
    assert "does not attend" in message(**plain)
    other = write_data_set(tmp_path / "other", dict.fromkeys("xy", "test"), [(name, "en", "a dog") for name in "xy"])
    assert "not those of the images of the data set" in message(manifest=other)
    assert "no images in the split 'none'" in message(split="none")
    assert not files["captions"].exists()
