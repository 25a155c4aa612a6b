import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from vitcapr.errors import UserError
from vitcapr.metrics import java
from vitcapr.metrics.base import Caption
from vitcapr.metrics.captions import spice

CAPTIONS = [Caption("7.jpg", "a dog"), Caption("8.jpg", "a cat")]
REFERENCES = [["the dog"], ["the cat", "a kitten"]]
ANSWER = """[{"image_id": 1, "scores": {"All": {"f": 0.5}}}, {"image_id": 0, "scores": {"All": {"f": 0.25}}}]"""


def test_missing_models_are_an_error_that_says_what_to_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(spice, "JARS", tmp_path)
    with pytest.raises(UserError, match=r"384 MB.*get_stanford_models"):
        spice.check_installed()
    (tmp_path / "spice/lib").mkdir(parents=True)
    for name in ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar"):
        (tmp_path / "spice/lib" / name).touch()
    spice.check_installed()


def test_scores_go_to_their_images(fake_java: Callable[[str], None], tmp_path: Path) -> None:
    """The request comes after the jar; the last file named is the one to answer in."""
    asked = tmp_path / "asked.json"
    fake_java(
        'while [ "$1" != "-jar" ]; do shift; done\n'
        f'cp "$3" {asked}; shift 3\n'
        f'while [ "$1" != "-out" ]; do shift; done; echo \'{ANSWER}\' > "$2"'
    )
    measure = spice.spice(CAPTIONS, REFERENCES, timeout=20)
    assert measure.per_image.tolist() == [0.25, 0.5]
    assert '"test": "a cat", "refs": ["the cat", "a kitten"]' in asked.read_text()


def test_the_release_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its models are a download, so that it ends where it loads them; an older Stanford jar stands in for its classes.

    Without the opened packages it ends before, as its serializer is made: java.lang.ExceptionInInitializerError.
    """
    package, copy = java.JARS / "spice", tmp_path / "spice"
    (copy / "lib").mkdir(parents=True)
    shutil.copy(package / "spice-1.0.jar", copy)  # Java looks for the other jars beside the real file
    for file in (package / "lib").glob("*.jar"):
        (copy / "lib" / file.name).symlink_to(file)
    missing = copy / "lib" / "stanford-corenlp-3.6.0.jar"
    if missing.exists():
        pytest.skip("the models are here")
    missing.symlink_to(java.JARS / "tokenizer" / "stanford-corenlp-3.4.1.jar")
    monkeypatch.setattr(java, "JARS", tmp_path)
    with pytest.raises(UserError, match=r"SPICE .*it said 'Parsing reference captions'"):
        java.run_spice('[{"image_id": 0, "test": "a dog", "refs": ["the dog"]}]', CAPTIONS[0], timeout=120)


def test_a_scorer_that_writes_nothing(fake_java: Callable[[str], None]) -> None:
    fake_java("exit 0")
    with pytest.raises(UserError, match=r"SPICE wrote nothing \(image 7.jpg"):
        spice.spice(CAPTIONS, REFERENCES, timeout=1)
