"""A language model as captioner: pieces, training, decoding, captions of photographs, publication."""

import shutil
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitcapr
from tests.commands.stores import train
from tests.models.networks import save_language_model
from vitcapr.errors import UserError
from vitcapr.extensions.exchange.commands.models import push
from vitcapr.extensions.language_model.stages.pieces import pieces
from vitcapr.formats.captions import read_attention, read_captions
from vitcapr.formats.model import read_model
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.decode import decode

TEXTS = [f"{start} {thing}" for start in ("a", "the big") for thing in ("dog", "cat", "boat", "man")]
PHASES = [
    {"epochs": 2, "batch_images": 4, "learning_rate": 0.01, "warmup_steps": 0},
    {"epochs": 1, "batch_images": 4, "learning_rate": 0.001, "objective": {"kind": "self_critical", "samples": 2}},
]


@pytest.fixture
def trained(copied_project: Path) -> dict[str, Any]:
    """The inputs of decoding, of a captioner that is trained once."""
    results, backbones = copied_project / "results/toy", copied_project / "backbones"
    folder, text = results / "captioners/tiny", results / "text/pieces/tiny"
    inputs = {"features": results / "features/vit/manifest.json", "manifest": results / "data/manifest.json"}
    words = {"vocabulary": text / "vocabulary.json"}
    if not (folder / "card.json").exists():
        save_language_model(backbones / "tiny-llama", TEXTS)
        model = {"source": "tiny-llama"}
        settings = {"language_model": model}
        run_stage(pieces, manifest=inputs["manifest"], **words, tokens=text / "tokens.npz", settings=settings)
        settings = {"language_model": model, "prefix": {"grid": 1}}
        settings["training"] = {"phases": PHASES, "precision": "float32", "select_by": "cider"}
        train("captioner", results / "features/vit", folder, {"text": text}, architecture="language_model", **settings)
    return {**inputs, **words, "captioner": folder}


def test_only_what_was_trained_is_stored_and_the_card_names_the_rest(trained: dict[str, Any]) -> None:
    weights, card = read_model(trained["captioner"])
    assert weights.keys() == {name for name in weights if "lora" in name or name.startswith("projector")}
    assert card["language_model"]["source"] == "tiny-llama"
    assert len(card["language_model"]["weights_sha256"]) == 64
    assert "extensions" not in card, "what comes with vitcapr needs no other distribution"


def test_pieces_are_words_where_people_read(trained: dict[str, Any], tmp_path: Path) -> None:
    words = Vocabulary.read(trained["vocabulary"])
    assert words.words[:3] == ("<pad>", "<start>", "<end>")
    assert " dog" in words.words  # One piece; a bird is several, as the tokenizer has never read of it.
    assert " bird" not in words.words
    output = {"captions": tmp_path / "captions.json", "attention": tmp_path / "attention.npz"}
    settings = {"decoding": {"beam_size": 3, "n_best": 3, "max_length": 9, "precision": "float32"}}
    run_stage(decode, **trained, split="test", settings=settings, **output)
    written, table = read_captions(output["captions"]), read_attention(output["attention"])
    assert len(written) == 3
    for place, entry in enumerate(written.values()):
        for candidate in entry.candidates:
            assert candidate.caption == " ".join(candidate.tokens)
            assert len(candidate.token_log_probs) == len(candidate.tokens) + 1
            assert sum(candidate.token_log_probs) == pytest.approx(candidate.log_prob, abs=1e-4)
        looked = table.weights[table.offsets[place] : table.offsets[place + 1]]
        assert len(looked) == len(entry.tokens)
        np.testing.assert_allclose(looked.sum(1), 1, atol=2e-3)


def test_a_published_captioner_writes_the_same_elsewhere(
    trained: dict[str, Any], copied_project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    url, photograph = f"memory://published-{uuid.uuid4().hex}", copied_project / "photos/photo 03.png"
    push(trained["captioner"], url)
    here, there = (vitcapr.load_captioner(place).caption(photograph)[0] for place in (trained["captioner"], url))
    assert (here.caption, here.log_prob) == (there.caption, there.log_prob)


def test_another_language_model_is_refused(trained: dict[str, Any], copied_project: Path, tmp_path: Path) -> None:
    backbones = tmp_path / "backbones"
    shutil.copytree(copied_project / "backbones", backbones)
    save_language_model(backbones / "tiny-llama", TEXTS, rms_norm_eps=1e-3)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(UserError, match="other weights of its language model"):
        patch.setenv("VITCAPR_BACKBONES", str(backbones))
        run_stage(decode, **trained, split="test", captions=tmp_path / "captions.json")
