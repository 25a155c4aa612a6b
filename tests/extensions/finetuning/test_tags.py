"""Parts of speech, and how they are found again by character."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from vitcapr.errors import UserError
from vitcapr.extensions.finetuning import tags
from vitcapr.extensions.finetuning.tags import hanlp_tagger, jieba_tagger, tag_english, taggers
from vitcapr.extensions.finetuning.text_files import TAGS, TagTable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A brown dog is running through the grass .", "DET ADJ NOUN VERB VERB ADP DET NOUN ."),
        ("Two boys play soccer near a tall building", "NUM NOUN VERB NOUN ADP DET ADJ NOUN"),
        ("A smiling man quickly climbs 3 rocks", "DET ADJ NOUN ADV NOUN NUM NOUN"),
    ],
)
def test_english_by_rule(text: str, expected: str) -> None:
    found = tag_english(text)
    assert [tag for _, _, tag in found] == expected.split()
    assert " ".join(text[start:end] for start, end, _ in found) == text


def test_chinese_by_jieba() -> None:
    text = "一个女人 躺在海水里"
    found = jieba_tagger().tag(text)
    assert "".join(text[start:end] for start, end, _ in found) == text.replace(" ", "")
    assert {text[start:end]: tag for start, end, tag in found} | {"女人": "NOUN", "躺": "VERB", "在": "ADP"} == {
        text[start:end]: tag for start, end, tag in found
    }


def test_hanlp_in_its_own_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    words, parts = ["Two", "dogs", "ran", "and", "sat", "."], ["NUM", "PROPN", "AUX", "CCONJ", "VERB", "PUNCT"]

    def model(_: str, tasks: list[str]) -> dict[str, list[str]]:
        assert tasks == ["tok", "pos"]
        return {"tok": words, "pos": parts}

    mtl = SimpleNamespace(UD_ONTONOTES_TOK_POS_LEM_FEA_NER_SRL_DEP_SDP_CON_XLMR_BASE="model")
    module = SimpleNamespace(pretrained=SimpleNamespace(mtl=mtl), load=lambda _: model)
    monkeypatch.setitem(__import__("sys").modules, "hanlp", module)  # type: ignore[arg-type]
    monkeypatch.setattr(tags, "version", lambda _: "2")
    found = hanlp_tagger().tag("Two dogs ran and sat.")
    assert [tag for _, _, tag in found] == ["NUM", "NOUN", "VERB", "CONJ", "VERB", "."]
    assert found[-1][:2] == (20, 21)


def test_hanlp_asked_for_and_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tags.importlib.util, "find_spec", lambda _: None)  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="HanLP is not installed"):
        taggers("hanlp")


def test_the_tag_at_a_character(tmp_path: Path) -> None:
    table = TagTable.of([[(0, 1, "DET"), (2, 5, "NOUN")], [], [(1, 2, "VERB")]])
    table.write(tmp_path / "tags.npz")
    table = TagTable.read(tmp_path / "tags.npz")
    det, noun, verb = (TAGS.index(tag) + 1 for tag in ("DET", "NOUN", "VERB"))
    assert table.at(0, [0, 1, 2, 4, 5, 9]) == [det, 0, noun, noun, 0, 0]
    assert table.at(1, [0, 3]) == [0, 0]
    assert table.at(2, [0, 1, 2]) == [0, verb, 0]
