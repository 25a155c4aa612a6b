"""METEOR's paraphrases, cut down to what some references can use."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from vitcapr.errors import UserError
from vitcapr.metrics import java
from vitcapr.metrics.base import Caption
from vitcapr.metrics.captions.meteor import find_paraphrases, write_paraphrases

REFERENCES = {"1": ["a dog runs", "the dog"], "2": ["two cats"]}
ENTRY = "0.5\na dog\nthe hound\n"


@pytest.fixture
def entries(fake_java: Callable[[str], None], tmp_path: Path) -> Callable[[str], None]:
    """METEOR's program writes these bytes, compressed, and as many of the compressed ones as are kept."""

    def give(text: str, *, cut: int | None = None) -> None:
        stored = tmp_path / "stored.gz"
        stored.write_bytes(gzip.compress(text.encode())[:cut])
        fake_java(f'cp {stored} "$6"')

    return give


def test_meteor_is_the_same_by_the_paraphrases_of_its_references(
    words: tuple[list[str], list[list[str]]], meteor_statistics: list[list[float]], tmp_path: Path
) -> None:
    candidates, references = words
    images = {str(number): texts for number, texts in enumerate(references)}
    count = write_paraphrases(tmp_path, images, timeout=300)
    assert 0 < count < 20_000
    table = find_paraphrases(tmp_path, images)
    named = [Caption(image, text) for image, text in zip(images, candidates, strict=True)]
    found = java.meteor_statistics(named, references, timeout=300, paraphrases=table)
    assert found == meteor_statistics[: len(candidates)]


def test_paraphrases_of_other_references_are_refused(entries: Callable[[str], None], tmp_path: Path) -> None:
    entries(ENTRY)
    card = tmp_path / "card.json"
    assert write_paraphrases(tmp_path, REFERENCES, timeout=20) == 1
    assert find_paraphrases(tmp_path, REFERENCES) == tmp_path / "table.gz"
    with pytest.raises(UserError, match=r"of other references.*card\.json"):
        find_paraphrases(tmp_path, REFERENCES | {"2": ["two dogs"]})
    whole = (tmp_path / "table.gz").read_bytes()
    (tmp_path / "table.gz").write_bytes(whole[:-1])
    with pytest.raises(UserError, match=r"missing or damaged .*table\.gz"):
        find_paraphrases(tmp_path, REFERENCES)
    (tmp_path / "table.gz").unlink()
    with pytest.raises(UserError, match=r"missing or damaged .*table\.gz"):
        find_paraphrases(tmp_path, REFERENCES)
    card.write_text(json.dumps({"format": "something else"}))
    with pytest.raises(UserError, match="not a card of paraphrases"):
        find_paraphrases(tmp_path, REFERENCES)


@pytest.mark.parametrize(("text", "cut"), [(ENTRY * 2, 30), (ENTRY + "0.5\n", None)])
def test_half_a_table_is_not_kept(entries: Callable[..., None], tmp_path: Path, text: str, cut: int | None) -> None:
    entries(text, cut=cut)
    with pytest.raises(UserError, match=r"half a table .*table\.gz.*disk full"):
        write_paraphrases(tmp_path, REFERENCES, timeout=20)
    assert not (tmp_path / "card.json").exists()
    assert not (tmp_path / "table.gz").exists()
