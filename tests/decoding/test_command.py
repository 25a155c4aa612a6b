"""``vitcapr decode`` as a user runs it, on a random captioner and random features."""

import json

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

IMAGES, PATCHES, WIDTH, ENTRIES = 9, 6, 8, 14
WORDS = ["a", "dog", "runs", "on", "the", "grass", "while", "two", "cats", "sleep"]
PLAIN = '{"decoding": {"beam_size": 3, "n_best": 2, "max_length": 6, "min_length": 1, "batch_images": 2}}'
ENTRIES = len(WORDS) + 4


def captioner(folder, kind, vocabulary=ENTRIES, width=WIDTH, seed=3):
    sizes = {"embedding_dim": 5, "hidden_dim": 7}
    weights = untrained(kind, vocabulary, width, seed, **sizes).state_dict()
    write_model(folder, weights, {"architecture": architecture(kind, vocabulary, width, **sizes)})
    return folder


def dataset(folder, names):
    splits = {name: "test" if number % 2 else "train" for number, name in enumerate(names)}
    return write_data_set(folder, splits, [(name, "en", "a dog") for name in names], "toy", files="{}.png")


@pytest.fixture
def files(tmp_path):
    names = [f"image{number}" for number in range(IMAGES)]
    draw = np.random.default_rng(0)
    arrays = {
        "patches": draw.normal(size=(IMAGES, PATCHES, WIDTH)).astype(np.float16),
        "cls": draw.normal(size=(IMAGES, WIDTH)).astype(np.float16),
    }
    vocabulary = Vocabulary.build(WORDS, min_count=1)
    vocabulary.write(tmp_path / "vocabulary.json")
    return {
        "features": write_store(tmp_path, arrays, names, chunk=4, grid=[2, 3]),
        "manifest": dataset(tmp_path / "data", names),
        "vocabulary": tmp_path / "vocabulary.json",
        "captioner": captioner(tmp_path / "captioner", "patch_attention"),
        "split": "test",
        "captions": tmp_path / "captions.json",
        "settings": PLAIN,
    }


def test_captions_and_attention(files, tmp_path):
    run_stage(decode, **files, attention=tmp_path / "attention.npz", log=tmp_path / "log")
    entries = json.loads(files["captions"].read_text())
    assert [entry["image_id"] for entry in entries] == ["image1", "image3", "image5", "image7"]
    for entry in entries:
        assert entry["caption"] == " ".join(entry["tokens"])
        assert 1 <= len(entry["tokens"]) <= 6
        assert set(entry["tokens"]) <= set(WORDS)
        assert len(entry["token_log_probs"]) == len(entry["tokens"]) + 1
        assert entry["log_prob"] == pytest.approx(sum(entry["token_log_probs"]), abs=1e-4)
        first, second = entry["candidates"]
        assert {name: entry[name] for name in first} == first
        assert first["score"] >= second["score"]
    with np.load(tmp_path / "attention.npz") as stored:
        assert stored["offsets"].tolist() == np.cumsum([0, *(len(entry["tokens"]) for entry in entries)]).tolist()
        assert stored["image_row"].tolist() == [1, 3, 5, 7]
        assert stored["grid"].tolist() == [2, 3]
        np.testing.assert_allclose(stored["weights"].astype(float).sum(1), 1, atol=5e-3)
    assert "4/4 captions" in (tmp_path / "log").read_text()


def test_samples_are_the_same_in_batches_of_any_size(files, tmp_path):
    """And n_best is not bound by the beam."""

    def written(**changes):
        sampling = {"temperature": 0.9, "top_p": 0.95, **changes.pop("sampling", {})}
        settings = {"decoding": {"n_best": 9, "max_length": 6, "sampling": sampling, **changes}}
        attention = tmp_path / "attention.npz"
        run_stage(decode, **{**files, "settings": json.dumps(settings)}, attention=attention, log=tmp_path / "log")
        with np.load(attention) as stored:
            return json.loads(files["captions"].read_text()), stored["offsets"].tolist()

    found, offsets = written()
    assert "4 images, 9 samples" in (tmp_path / "log").read_text()
    assert offsets == np.cumsum([0, *(len(entry["tokens"]) for entry in found)]).tolist()
    assert len({str(entry["candidates"]) for entry in found}) == 4
    drawn = [[one["tokens"] for one in entry["candidates"]] for entry in found]
    assert all(5 < len(image) <= 9 for image in drawn)
    for size in (1, 3):
        again, _ = written(batch_images=size)
        assert [[one["tokens"] for one in entry["candidates"]] for entry in again] == drawn
    other, _ = written(sampling={"seed": 1})
    assert [[one["tokens"] for one in entry["candidates"]] for entry in other] != drawn


def test_the_baseline_reads_cls_and_has_no_attention(files, tmp_path):
    files["captioner"] = captioner(tmp_path / "baseline", "baseline")
    run_stage(decode, **files)
    assert len(json.loads(files["captions"].read_text())) == 4
    with pytest.raises(UserError, match="does not attend"):
        run_stage(decode, **files, attention=tmp_path / "attention.npz")


def test_inputs_that_do_not_belong_together_are_an_error(files, tmp_path):
    def message(**changes):
        with pytest.raises(UserError) as caught:
            run_stage(decode, **{**files, **changes})
        return str(caught.value)

    assert "has 20 words and the vocabulary 14" in message(
        captioner=captioner(tmp_path / "words", "patch_attention", vocabulary=20)
    )
    assert "width 3, these are 8" in message(captioner=captioner(tmp_path / "width", "patch_attention", width=3))
    assert "not those of the images of the data set" in message(manifest=dataset(tmp_path / "other", ["x", "y"]))
    assert "no images in the split 'validation'" in message(split="validation")
    assert "n_best 3 is larger than" in message(settings='{"decoding": {"beam_size": 2, "n_best": 3}}')
    assert not files["captions"].exists()
