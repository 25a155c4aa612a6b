"""The twelve ideas of experiments/ideas: each is short, is found as a part of a study, learns, and counts."""

import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from tests.checkouts import REPOSITORY
from tests.checkpoints import save_bert
from tests.training import test_captioner_task as captioning
from tests.training import test_retriever as retrieval
from tests.training.trained import train_in
from vitcapr.batches.sources import MemoryArray, MemoryFeatures
from vitcapr.config.dual_encoder import RetrieverConfig
from vitcapr.config.objective import CaptionerLoss, Words
from vitcapr.config.parts import Names, Reranker
from vitcapr.config.training import (
    CaptionerPhaseConfig,
    CaptionerTrainingConfig,
    RetrieverPhaseConfig,
    TrainingConfig,
)
from vitcapr.errors import UserError
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.loader import extension_parts
from vitcapr.models.dual_encoder_model import build_dual_encoder
from vitcapr.models.interface import build_captioner
from vitcapr.pipeline import code as hashing
from vitcapr.progress import Reporter
from vitcapr.retrieval.embedder import Retriever
from vitcapr.retrieval.reranking import Candidates
from vitcapr.training.captioner_task import TrainingImages

IDEAS = sorted((REPOSITORY / "experiments/ideas").glob("*/*.py"))
WORDS = ("unigram_smoothing", "unlikelihood")


@pytest.fixture
def idea(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An idea in the plugins of a study, which is the working folder."""
    path: Path = request.param
    monkeypatch.chdir(tmp_path)
    copy = Path("plugins", path.parent.name, path.name)
    copy.parent.mkdir(parents=True)
    shutil.copy(path, copy)
    for cached in (hashing.module_code, hashing._import_graph, hashing._files):
        cached.cache_clear()
    return copy


def pairs_of(objective: Any = "info_nce", head: Any = "linear") -> tuple[Any, dict[str, Any]]:
    """A training of a dual encoder, and its settings."""
    phase = RetrieverPhaseConfig(epochs=1, batch_images=8, objective=objective)
    assert RetrieverPhaseConfig.model_validate(phase.canonical()) == phase
    image = {"feature_dim": retrieval.WIDTH, "head": head}
    model = retrieval.encoder(bias=phase.objective.start_bias, image=image)
    settings = {"image": {"head": head}, "training": {"phases": [phase.canonical()]}}
    return retrieval.task_of(model, phases=[phase]), {"retriever": settings}


def words_of(objective: Any = "cross_entropy", kind: str = "baseline") -> tuple[Any, dict[str, Any]]:
    phase = CaptionerPhaseConfig(epochs=1, batch_images=3, objective=objective)
    training = CaptionerTrainingConfig(phases=[phase])
    if kind == "baseline":
        model = captioning.model_of(kind)
    else:
        sizes = {"vocabulary": len(captioning.VOCABULARY), "feature_dim": 6, "embedding_dim": 4, "hidden_dim": 5}
        looks = {"attention_dim": 3, "scoring": "tanh", "init_from_cls": True, "output_dim": None, "dropout": 0.0}
        own = {"output_activation": "tanh", "images": 4, "neighbours": 2}
        torch.manual_seed(0)
        model = build_captioner({"kind": kind, **sizes, **looks, **own})
        model.begin(TrainingImages(captioning.STORE, captioning.TOKENS, np.arange(3), seed=0))
        assert [captioning.VOCABULARY.decode(text.tolist()) for text in model.texts[:2]] == [
            captioning.CAPTIONS[caption] for caption in (0, 2)
        ]
    task = captioning.task_of(model.train(), training)
    return task, {"captioner": {"architecture": kind, "training": training.canonical()}}


def tower_of(name: str) -> tuple[Any, dict[str, Any]]:
    """A training of a tower over a BERT, whose untrained adapters change nothing."""
    known = ["<pad>", "<start>", "<end>", *(f"w{number}" for number in range(2 + retrieval.IMAGES))]
    folder = save_bert(Path("bert"), known[3:])
    section = RetrieverConfig.model_validate({"backbone": "vit", "text": {"kind": name, "source": str(folder)}})
    assert RetrieverConfig.model_validate(section.canonical()) == section
    text = {**section.text.described(), "vocabulary": len(known)}
    model = retrieval.encoder(text=text)
    begin: Any = model.text.begin
    begin(known)
    tokenizer, bert = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    expected = bert(**tokenizer(["w1 w4", "w0"], padding=True, return_tensors="pt")).last_hidden_state
    expected = torch.stack([expected[0].mean(0), expected[1, :3].mean(0)])
    project: Any = model.text.project
    ids = torch.tensor([[1, 4, 7, 2], [1, 3, 2, 0]])
    torch.testing.assert_close(model.eval().text(ids), project(expected), atol=1e-5, rtol=1e-5)
    build_dual_encoder(
        {"embedding_dim": 4, "temperature": 0.1, "learn_temperature": True, "text": text, "image": {"feature_dim": 6}}
    ).load_state_dict(model.state_dict())
    return retrieval.task_of(model.train(), phases=[RetrieverPhaseConfig(epochs=1, batch_images=8)]), {
        "retriever": {"text": section.text.canonical()}
    }


def teacher(path: Path) -> Path:
    generator = np.random.default_rng(0)
    vectors = {name: generator.normal(size=(8, 3)).astype(np.float32) for name in ("images", "captions")}
    rows = np.arange(8, dtype=np.int32)
    np.savez(path, **vectors, image_row=rows, caption_row=rows, caption_image=rows)
    return path


@pytest.mark.parametrize("idea", [idea for idea in IDEAS if idea.parent.name != "rerankers"], ids=str, indirect=True)
def test_an_idea_learns_and_counts(idea: Path) -> None:
    assert len(idea.read_text().splitlines()) <= 60
    kind, name = idea.parent.name, idea.stem
    if kind == "heads":
        task, settings = pairs_of(head=name)
    elif kind == "towers":
        task, settings = tower_of(name)
    elif kind == "captioners":
        task, settings = words_of(kind=name)
    elif name in WORDS:
        task, settings = words_of(name)
    else:
        extra = {"teacher": str(teacher(Path("teacher.npz")))} if name == "distillation" else {}
        task, settings = pairs_of({"kind": name, **extra})
    optimizer, losses = torch.optim.Adam(task.model.parameters(), 0.02), []
    for epoch in range(1, 31):
        loss, _ = task.loss(next(iter(task.batches(0, epoch, 0))))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.8 * losses[0] or losses[-1] < losses[0] - 0.5
    assert list(extension_parts(settings).values()) == [idea.as_posix()]
    stage = "train_captioner" if "captioner" in settings else "train_retriever"
    assert idea.as_posix() in hashing.job_code(f"vitcapr.stages.{stage}", settings)


def test_repeats_are_unlikely_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the caption "a a b", the second "a" is a target and "a" a repeat at "b": -log(1 - p(a)) of the last word."""
    monkeypatch.chdir(tmp_path)
    Path("plugins/losses").mkdir(parents=True)
    shutil.copy(REPOSITORY / "experiments/ideas/losses/unlikelihood.py", "plugins/losses")
    tokens = torch.tensor([[1, 3, 3]])
    targets, logits = torch.tensor([3, 3, 4]), torch.zeros(3, 5)
    words = Words(logits, targets, tokens, tokens > 0)
    likelihood = torch.log(torch.tensor(5.0))
    # The start is a repeat of all three words, "a" of the last one.
    expected = likelihood - 4 * torch.log(torch.tensor(0.8)) / 3
    assert Names("LOSS", CaptionerLoss).read("unlikelihood").loss(words) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("idea", [idea for idea in IDEAS if idea.parent.name == "rerankers"], ids=str, indirect=True)
def test_late_interaction_by_hand(idea: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean over words of the best patch, with the tower of a retriever whose image vector adds CLS and a patch."""
    monkeypatch.setattr("vitcapr.retrieval.embedder.check_widths", lambda *_: None)
    torch.manual_seed(0)
    words = replace(Vocabulary.build(["red", "dog", "boat"], min_count=1), recipe={"normalise": {}})
    image = {"feature_dim": 4, "pool": "cls_mean"}
    text = {"kind": "bag", "vocabulary": len(words), "word_dim": 3}
    sizes = {"embedding_dim": 3, "temperature": 0.1, "learn_temperature": True, "image": image, "text": text}
    model = build_dual_encoder(sizes).eval()
    draw = np.random.default_rng(0)
    arrays = {"cls": draw.normal(size=(2, 4)), "patches": draw.normal(size=(2, 5, 4))}
    store: Any = MemoryFeatures(**{name: MemoryArray(array.astype(np.float32)) for name, array in arrays.items()})
    card = {"architecture": sizes, "settings": {"retriever": {"text": {"max_length": 9}}}}
    retriever = Retriever(Path(), model, card, words, torch.device("cpu"))
    captions = [["red dog", "boat"], ["dog"]]
    rows = np.array([1, 0])
    scores = (
        Names("RERANKER", Reranker)
        .read({"kind": idea.stem, "pooled": 0.0})
        .scores(Candidates(retriever, [store], rows, captions, Reporter(stream=StringIO())))
    )
    project: Any = model.image.head
    for row, texts, of_image in zip(rows, captions, scores, strict=True):
        joined = [np.concatenate([arrays["cls"][row], patch]) for patch in arrays["patches"][row]]
        patches = torch.nn.functional.normalize(project(torch.tensor(np.array(joined), dtype=torch.float32)), dim=1)
        cosines = {word: patches @ torch.from_numpy(retriever.text_embedder.embed([word])[0]) for word in words.words}
        expected = [np.mean([float(cosines[word].detach().max()) for word in text.split()]) for text in texts]
        assert of_image == pytest.approx(expected, abs=1e-5)
    assert idea.as_posix() in hashing.job_code("vitcapr.stages.rerank", {"scorer": idea.stem})


WRONG_LOSS = """
import torch
from vitcapr.config.objective import Loss
class Wrong(Loss):
    def loss(self, pairs):
        return {value}
LOSS = Wrong
"""
WRONG_HEAD = """
import torch
from vitcapr.config.parts import Head
class Wrong(Head):
    def build(self, features, embedding_dim, dropout):
        return torch.nn.Linear(features, embedding_dim + 1)
HEAD = Wrong
"""


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        (
            "losses/shaped",
            WRONG_LOSS.format(value="pairs.similarity.mean(1)"),
            "the shape .8,.; it must be a scalar",
        ),
        ("losses/nan", WRONG_LOSS.format(value="pairs.similarity.mean() * torch.nan"), "the loss is not a number at"),
        (
            "losses/reads",
            WRONG_LOSS.format(value="open('words.txt')"),
            r"the loss 'reads' reads 'words.txt', of which no edit is noticed .*; name it 'reads.txt'",
        ),
        ("heads/wide", WRONG_HEAD, r"the head 'wide' turns \(2, 6\) into \(2, 5\), not into \(2, 4\)"),
    ],
)
def test_a_wrong_part_is_one_line(
    file: str, text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("plugins", f"{file}.py")
    path.parent.mkdir(parents=True)
    path.write_text(text)
    Path("words.txt").touch()
    with pytest.raises((UserError, ValueError), match=message):
        task, _ = pairs_of(**{"objective" if path.parent.name == "losses" else "head": path.stem})
        train_in(tmp_path / "training", task, TrainingConfig(phases=task._phases))


def test_a_model_elsewhere_names_the_head_that_is_missing() -> None:
    with pytest.raises(UserError, match="no head is called 'theirs'; copy plugins/heads/theirs"):
        retrieval.encoder(image={"feature_dim": retrieval.WIDTH, "head": {"kind": "theirs"}})
