"""The parts of experiments/record: an ensemble of captioners, agreement with neighbours."""

import shutil
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tests.checkouts import REPOSITORY
from vitcapr.config.parts import Names, Reranker
from vitcapr.models.interface import build_captioner
from vitcapr.progress import Reporter
from vitcapr.retrieval.reranking import Candidates

SIZES = {"vocabulary": 9, "feature_dim": 6, "embedding_dim": 4, "hidden_dim": 5, "dropout": 0.0}
MEMBER = {**SIZES, "kind": "patch_attention", "attention_dim": 3, "scoring": "tanh", "init_from_cls": True}
MEMBER |= {"output_dim": None, "output_activation": "tanh"}


@pytest.fixture(autouse=True)
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(REPOSITORY / "experiments/record", "plugins")


@torch.no_grad()
def test_an_ensemble_is_the_mean_of_log_probabilities_word_by_word() -> None:
    torch.manual_seed(0)
    model: Any = build_captioner({"kind": "ensemble", "folders": ["a", "b"], "parts": [MEMBER, MEMBER]}).eval()
    features = {"patches": torch.randn(2, 4, 6), "cls": torch.randn(2, 6)}
    words = torch.tensor([[1, 5, 6, 7], [1, 8, 4, 3]])
    mask, owner = words > 0, torch.arange(2)
    parts = [each(each.encode(features), words, mask, owner).log_softmax(-1) for each in model.members]
    logits = model(model.encode(features), words, mask, owner)
    torch.testing.assert_close(logits, (parts[0] + parts[1]) / 2)
    memory = model.encode(features)
    state, steps = model.initial_state(memory), []
    for word in words.T:
        step = model.step(memory, state, word[:, None])
        state, steps = step.state, [*steps, step.logits[:, 0]]
    torch.testing.assert_close(torch.stack(steps, 1).flatten(0, 1), logits)


def test_agreement_is_with_the_captions_of_the_nearest_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows 0 and 1 are training images; row 2 is like row 1, whose caption its second candidate repeats."""
    captions = pd.DataFrame({"image_row": [0, 1, 2], "text": ["a red dog runs", "two blue boats float", "a boat"]})
    data = SimpleNamespace(captions=captions, rows=lambda split: {"train": np.array([0, 1])}[split])
    monkeypatch.setattr("vitcapr.formats.manifest.read_manifest", lambda _: data)
    images = np.float32([[1, 0], [0, 1], [0, 1]])
    texts = {"a red dog runs": [0, 1], "two blue boats float": [1, 0]}
    retriever: Any = SimpleNamespace(
        image_embedder=lambda: SimpleNamespace(embed=lambda rows: images[rows]),
        text_embedder=SimpleNamespace(embed=lambda given: np.float32([texts[text] for text in given])),
    )
    candidates = Candidates(retriever, [], np.array([2]), [list(texts)], Reporter(stream=StringIO()))
    settings = {"kind": "neighbours", "manifest": "manifest.json", "neighbours": 1}
    for share, expected in ((0.0, [1, 0]), (1.0, [0, 1]), (0.5, [0.5, 0.5])):
        (scores,) = Names("RERANKER", Reranker).read({**settings, "share": share}).scores(candidates)
        assert scores == pytest.approx(expected)
