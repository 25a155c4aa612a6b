"""Foils by a trained captioner: its likelihood from photographs, with and without the image."""

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import vitcapr
from tests.models.untrained import untrained
from vitcapr.errors import UserError
from vitcapr.extensions.preferences.commands import foils
from vitcapr.extensions.preferences.compositional import LikelihoodScorer
from vitcapr.formats.vocabulary import SPECIALS, Vocabulary

WORDS = ("cat", "dog", "runs")


class Noise:
    """Features by the name of an image."""

    def __call__(self, names: Sequence[str]) -> dict[str, torch.Tensor]:
        draws = [torch.randn(5, 6, generator=torch.Generator().manual_seed(ord(name))) for name in names]
        return {"patches": torch.stack(draws)[:, 1:], "cls": torch.stack(draws)[:, 0]}


def scorer(kind: str = "patch_attention") -> LikelihoodScorer:
    words = Vocabulary((*SPECIALS, *WORDS), (0,) * 6, "", recipe={"normalise": {}})
    return LikelihoodScorer(untrained(kind, len(words), 6).eval(), words, Noise())


@pytest.mark.parametrize("kind", ["patch_attention", "transformer", "language_model"])
def test_the_likelihood_is_the_sum_of_the_steps(kind: str) -> None:
    """Word by word, as captions are generated, one caption after another; more captions than fit in one pass."""
    one = scorer(kind)
    images, captions = ["b", "a", "b"] * 50, ["cat runs", "dog", "dog runs cat"] * 50
    expected = []
    with torch.inference_mode():
        for image, caption in zip(images[:3], captions[:3], strict=True):
            memory = one.model.encode(one.features([image]))
            state, total = one.model.initial_state(memory), 0.0
            tokens = one.words.encode(caption.split())
            for read, target in pairwise(tokens):
                logits, state, _ = one.model.step(memory, state, torch.tensor([[read]]))
                total += float(logits.log_softmax(-1)[0, 0, target])
            expected.append(total)
    assert one(images, captions) == pytest.approx(np.tile(expected, 50), abs=1e-4)


def test_what_is_left_of_the_likelihood_without_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: two images give a caption 1/2 and 1/4, of mean 3/8; the other caption has 1/8 with both."""
    table = {("a", "s"): 1 / 2, ("b", "s"): 1 / 4, ("a", "t"): 1 / 8, ("b", "t"): 1 / 8}
    monkeypatch.setattr(
        LikelihoodScorer, "__call__", lambda _, i, t: np.log([table[each] for each in zip(i, t, strict=True)])
    )
    found = scorer().scores("lstm", ["a", "b"], ["s", "t"], np.log([1 / 2, 1 / 4]), alpha=2, seed=0)
    assert {name: np.exp(each).tolist() for name, each in found.items()} == {
        "lstm": pytest.approx([1 / 2, 1 / 8]),
        "lstm, no image": pytest.approx([3 / 8, 1 / 8]),
        "lstm / no image": pytest.approx([32 / 9, 8]),
        "lstm / blind": pytest.approx([2, 2]),
    }


@pytest.mark.parametrize(
    ("pairs", "models", "message"),
    [
        (["a/swap.json", "b/swap.json"], [Path("a")], "2 files of pairs are called 'swap'"),
        (["swap.json"], [Path("e/captioners/a"), Path("e/captioners/a")], "2 models are called 'e/captioners/a'"),
    ],
)
def test_names_that_would_be_one(pairs: list[str], models: list[Path], message: str, tmp_path: Path) -> None:
    for path in pairs:
        (tmp_path / path).parent.mkdir(exist_ok=True)
        entry = {"filename": "a.jpg", "caption": "a dog", "negative_caption": "dog a"}
        (tmp_path / path).write_text(json.dumps({"0": entry}))
    with pytest.raises(UserError, match=message):
        foils.main([tmp_path / path for path in pairs], captioner=models, photographs=tmp_path)


@pytest.mark.parametrize("kind", ["patch_attention", "baseline"])
def test_foils_by_a_captioner(kind: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its own caption has the likelihood that it was generated with (in bfloat16)."""
    captioner = Path("results/toy/captioners") / kind
    made = vitcapr.load_captioner(captioner, beam_size=1).caption("photos/photo 07.png")[0]
    one = foils._likelihood(captioner, Path("photos"))
    assert one(["photo 07.png"], [made.caption]) == pytest.approx([made.log_prob], rel=1e-3)
    assert [one.knows(caption) for caption in ("a dog", "a zebra")] == [True, False]
    names = [path.name for path in sorted(Path("photos").iterdir())[:2]]
    pairs = [{"filename": name, "caption": "a dog", "negative_caption": "dog a"} for name in (*names, "q.png")]
    path = project / f"{kind}.json"
    path.write_text(json.dumps(dict(enumerate(pairs))))
    foils.main([path], captioner=[captioner], photographs=Path("photos"), samples=20, output=project / "out")
    printed = capsys.readouterr().out
    assert "2 of 3 pairs" in printed
    assert f"{kind} knows every word of 2 pairs" in printed
    assert f"{kind} - {kind} / no image" in printed
    assert pd.read_csv(project / "out/differences.csv")["scorer"].tolist()[:3] == [kind, kind, f"{kind}, no image"]
    with pytest.raises(UserError, match="see photographs"):
        foils.main([path], captioner=[captioner])
