"""Compositional pairs: their forms, accuracies by hand, a language model against transformers' own loss."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from transformers import AutoTokenizer, LlamaForCausalLM

from tests.models.networks import save_language_model
from vitcapr.encoders.language_models import load_judge
from vitcapr.errors import UserError
from vitcapr.extensions.preferences.commands import foils
from vitcapr.extensions.preferences.compositional import FoilPair, cosines, read_foils, score_foils

PAIRS = [
    FoilPair("swap", "a.jpg", "A cat sees a dog.", "a dog sees a cat"),
    FoilPair("swap", "b.jpg", "a red car", "a blue car"),
    FoilPair("add", "a.jpg", "a cat", "a cat and a hat"),
    FoilPair("add", "c.jpg", "two boys", "two tall boys"),
]


def test_accuracies_by_hand() -> None:
    """Longer captions win; in "swap" that is a tie of 16 signs to 16 without the full stop, then a loss to "blue"."""
    texts = [pair.caption for pair in PAIRS] + [pair.foil for pair in PAIRS]
    lengths = np.array([len(text.rstrip(".")) for text in texts], float)
    both = score_foils(PAIRS, {"long": lengths, "short": -lengths}, samples=200, seed=0)
    found = both.accuracies[both.accuracies["scorer"] == "long"].set_index("split")
    assert found["accuracy"].to_dict() == {"swap": 0.25, "add": 0, "all": 0.125}
    assert found["pairs"].to_dict() == {"swap": 2, "add": 2, "all": 4}
    assert found["images"].to_dict() == {"swap": 2, "add": 2, "all": 3}
    assert found["same_words"].to_dict() == {"swap": 1, "add": 0, "all": 1}
    assert found["order_blind"].to_dict() == {"swap": 0.75, "add": 1, "all": 0.875}
    # An image of two pairs is drawn with both: "all" is 1/4 if a.jpg alone is drawn, 0 if it is not.
    assert found.loc["all", ["low", "high"]].tolist() == [0, 0.25]
    apart = both.differences.set_index("split")
    assert apart["difference"].to_dict() == {"swap": -0.5, "add": -1, "all": -0.75}
    assert apart.loc["add", ["scorer", "other", "low", "high"]].tolist() == ["long", "short", -1, -1]


def test_a_difference_by_rounding_is_a_tie() -> None:
    """A sum in another order of the words is another number in its last digits."""
    scores = {"bag": np.linspace(0.3, 0.3 + 2e-7, 2 * len(PAIRS))}
    assert score_foils(PAIRS, scores, samples=0, seed=0).accuracies["accuracy"].tolist() == [0.5, 0.5, 0.5]


def test_the_form_of_sugar_crepe(tmp_path: Path) -> None:
    content = json.dumps({"0": {"filename": "1.jpg", "caption": "a cat", "negative_caption": "a dog"}})
    path = tmp_path / "split.json"
    path.write_text(content, encoding="utf-8-sig")
    assert read_foils(path) == [FoilPair("split", "1.jpg", "a cat", "a dog")]
    path.write_text(content.replace('"a cat"', "null"))
    with pytest.raises(UserError, match=r"compositional pairs: 'caption' is None, not of type str \(entry 0\)"):
        read_foils(path)


def test_the_cosine_of_image_and_caption() -> None:
    def embed(names: Sequence[str]) -> np.ndarray:
        return np.array([{"a": (1, 0), "b": (0, 1), "x": (0.6, 0.8)}[name] for name in names])

    assert cosines(embed, embed, ["a", "b", "a"], ["x", "x", "b"]) == pytest.approx([0.6, 0.8, 0])


@pytest.fixture(scope="module")
def language_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_language_model(tmp_path_factory.mktemp("language-model"), ["a cat", "a dog runs"] * 2)


def test_the_blind_model_sums_log_probabilities(language_model: Path) -> None:
    """Against the mean loss that transformers gives for one caption without padding."""
    texts = ["a dog runs", "a cat"]
    tokenizer = AutoTokenizer.from_pretrained(language_model)
    tokens = [torch.tensor([tokenizer(f"<s>{text}")["input_ids"]]) for text in texts]
    model = LlamaForCausalLM.from_pretrained(language_model)
    with torch.inference_mode():
        expected = [-(each.shape[1] - 1) * float(model(each, labels=each).loss) for each in tokens]
    assert load_judge(str(language_model), "main", "cpu")(texts) == pytest.approx(expected, rel=1e-4)


def test_the_command(language_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = {"0": {"filename": "1.jpg", "caption": "a cat runs", "negative_caption": "runs a cat"}}
    entries["1"] = {"filename": "2.jpg", "caption": "a dog", "negative_caption": "a cat"}
    path = tmp_path / "swap_obj.json"
    path.write_text(json.dumps(entries))
    foils.main([path], blind=str(language_model), samples=20, output=tmp_path / "out")
    printed = capsys.readouterr().out
    assert "swap_obj" in printed
    assert "2 of 2 pairs; chance 50 %" in printed
    assert pd.read_csv(tmp_path / "out" / "accuracy.csv")["order_blind"].tolist() == [0.75, 0.75]
    assert (tmp_path / "out" / "accuracy.png").stat().st_size > 1000
    page = (tmp_path / "out" / "tables.html").read_text()
    assert all(part in page for part in ("<h1>True captions and foils</h1>", '<td class="l">swap_obj</td>'))
    assert "First page" not in page


def test_mistakes(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"0": {"filename": "1.jpg", "caption": "a cat"}}')
    with pytest.raises(UserError, match="compositional pairs"):
        read_foils(path)
    path.write_text('{"0": {"filename": "1.jpg", "caption": "a cat", "negative_caption": "a dog"}}')
    with pytest.raises(UserError, match="nothing to score"):
        foils.main([path])
    with pytest.raises(UserError, match="see photographs"):
        foils.main([path], retriever=[tmp_path])
    with pytest.raises(UserError, match="no photograph of the pairs"):
        foils.main([path], photographs=tmp_path, blind="none")
