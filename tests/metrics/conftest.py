import os
from collections.abc import Callable
from pathlib import Path

import pytest

from vitcapr.metrics import java
from vitcapr.metrics.caption_metric import Caption

CANDIDATES = [
    "a black dog runs through the snow",
    "two children are playing on a slide",
    "a man riding a red bicycle down the street",
    "the woman in the blue shirt is smiling at a",
    "a dog is running on the grass with a ball",
    "a group of people standing in front of a building",
]
REFERENCES = [
    ["A black dog is running through deep snow.", "The dog runs in the snow!", "a dog , in snow"],
    ["Two kids play on the slide at a playground", "Children are playing on a slide."],
    ["A man rides his bike down the street.", "The bicyclist's red bike is fast", "A man riding a red bicycle"],
    ["A woman wearing blue smiles.", "The woman (in the blue shirt) is smiling at her friend; she's happy"],
    ["A brown dog carries a tennis ball across the lawn.", "dog with ball in its mouth runs on grass"],
    ["People stand before a building.", "A crowd of people standing in front of a large building ..."],
]


@pytest.fixture
def fake_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """A program in the place of Java, from the lines of a shell script."""

    def make(script: str) -> None:
        path = tmp_path / "java"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setattr(java, "JAVA", str(path))
        monkeypatch.setattr(java, "PATIENCE", 1.0)

    return make


@pytest.fixture
def java_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """pycocoevalcap's own classes start whatever is called ``java``."""
    monkeypatch.setenv("PATH", f"{Path(java.JAVA).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture(scope="session")
def words() -> tuple[list[str], list[list[str]]]:
    """CANDIDATES and REFERENCES, tokenised in one call."""
    flat = [Caption(str(number), text) for number, text in enumerate(CANDIDATES)]
    flat += [Caption(str(number), text) for number, texts in enumerate(REFERENCES) for text in texts]
    tokens = iter(java.tokenize(flat))
    return [next(tokens) for _ in CANDIDATES], [[next(tokens) for _ in texts] for texts in REFERENCES]


@pytest.fixture(scope="session")
def more_words(words: tuple[list[str], list[list[str]]]) -> tuple[list[str], list[list[str]]]:
    """The captions above, one that is a reference itself, and a reordered one."""
    candidates, references = words
    candidates = [*candidates, "a perfect match", "on the mat sat the cat"]
    return candidates, [*references, ["a perfect match", "another"], ["the cat sat on the mat"]]
