"""``vitcapr evaluate``: its forms of output, and its one-line mistakes. The scores are tested in tests/api."""

import csv
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest

from vitcapr.commands.evaluate import app, main
from vitcapr.errors import UserError


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    references = [{"image_id": image, "caption": text} for image in (1, 2, 3) for text in ("a dog runs", "a cat sits")]
    found = {name: tmp_path / f"{name}.json" for name in ("results", "other", "references")}
    found["references"].write_text(json.dumps({"annotations": references}))
    for name, text in (("results", "a dog runs"), ("other", "a bird sits")):
        found[name].write_text(json.dumps([{"image_id": image, "caption": text} for image in (1, 2)]))
    return found


def test_a_table(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    main(files["results"], files["references"], metrics="bleu", samples=10)
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].split() == ["score", "value", "95", "%", "interval"]
    assert printed[2].split() == ["BLEU-1", "100.0", "100.0-100.0"]
    assert "the 2 images with a caption; 1 have none" in "\n".join(printed)
    assert printed[-1].startswith("Protocol: tok:ptb|refs:2|images:2|")


def test_chinese_is_scored_by_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BLEU-1 by hand: of the five characters of the caption, four are in the reference of six; the ratio of lengths
    costs exp(1 - 6/5)."""
    results, references = tmp_path / "results.json", tmp_path / "references.json"
    results.write_text(json.dumps([{"image_id": 1, "caption": "一个女人跑"}]))
    references.write_text(json.dumps({"annotations": [{"image_id": 1, "caption": "一个男人在跑。"}]}))
    main(results, references, language="zh", samples=0, as_json=True)
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert printed.err == "not scored: meteor, for English only\n"
    assert found["metrics"]["bleu_1"]["value"] == pytest.approx(4 / 5 * math.exp(-1 / 5))
    assert found["metrics"].keys() == {"bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l", "cider"}
    assert found["protocol"].startswith("tok:characters|refs:1|images:1|split:references|lang:zh|bleu")
    with pytest.raises(UserError, match="there is no metric to score by"):
        main(results, references, language="zh", metrics="meteor")
    with pytest.raises(UserError, match="CHAIR reads English, not 'zh'"):
        main(results, references, language="zh", instances=[results])


def test_csv_and_json_have_all_digits(
    files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"metrics": "rouge_l", "samples": 10, "per_image": tmp_path / "images.csv"}
    main(files["other"], files["references"], as_csv=True, **given)  # type: ignore[arg-type]
    printed = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(printed.out)))
    assert printed.err == "Scored: the 2 images with a caption; 1 have none.\n"
    main(files["other"], files["references"], as_json=True, **given)  # type: ignore[arg-type]
    content = json.loads(capsys.readouterr().out)
    assert content["without_captions"] == 1
    assert float(rows[0]["value"]) == content["metrics"]["rouge_l"]["value"] == pytest.approx(2 / 3)
    assert (tmp_path / "images.csv").read_text().splitlines()[0] == "image_id,caption,tokens,rouge_l"


def test_differences(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    given = {"against": files["other"], "metrics": "rouge_l", "samples": 10}
    main(files["results"], files["references"], as_json=True, **given)  # type: ignore[arg-type]
    found = json.loads(capsys.readouterr().out)["differences"]["rouge_l"]
    assert (found["after"], found["difference"]) == (1, pytest.approx(1 / 3))
    main(files["results"], files["references"], **given)  # type: ignore[arg-type]
    assert capsys.readouterr().out.splitlines()[2].split()[:4] == ["ROUGE-L", "66.67", "100.00", "+33.33"]


def test_retrieval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("images", "texts"):
        np.save(tmp_path / f"{name}.npy", np.eye(3))
    main(embeddings=(tmp_path / "images.npy", tmp_path / "texts.npy"), samples=10)
    assert capsys.readouterr().out.splitlines()[2].split() == ["I→T", "R@1", "100.0", "100.0-100.0"]
    images, texts = (str(tmp_path / f"{name}.npy") for name in ("images", "texts"))
    app(["--embeddings", images, texts, "--against", images, texts, "--samples", "10"], standalone_mode=False)
    assert capsys.readouterr().out.splitlines()[2].split()[:4] == ["I→T", "R@1", "100.00", "100.00"]


def test_options_that_do_not_go_together(files: dict[str, Path]) -> None:
    results, references = files["results"], files["references"]
    pair = (results, results)
    for options, message in (
        ({}, "captions or of embeddings"),
        ({"results": results}, "give --references"),
        ({"results": results, "references": references, "embeddings": pair}, "captions or of embeddings"),
        ({"embeddings": pair, "references": references}, "leave out --references"),
        ({"embeddings": pair, "against": results}, "give --against IMAGES.npy TEXTS.npy"),
        ({"results": results, "references": references, "as_json": True, "as_csv": True}, "give --json or --csv"),
        ({"results": results, "references": references, "captions_per_image": 5}, "leave out --captions-per-image"),
        ({"results": results, "references": Path("absent.json")}, "no such file"),
    ):
        with pytest.raises(UserError, match=message):
            main(**options)  # type: ignore[arg-type]


def test_files_with_a_byte_order_mark_and_odd_fields(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    content = json.loads(files["references"].read_text())
    for number, entry in enumerate(content["annotations"]):
        entry |= {"id": number, "oracle": 5, "score": float("nan")}
    content["images"] = [{"id": 1, "file_name": None}, {"id": 2, "file_name": "2.jpg"}]
    files["references"].write_text(json.dumps(content), encoding="utf-8-sig")
    files["results"].write_text(files["results"].read_text(), encoding="utf-16")
    main(files["results"], files["references"], metrics="bleu", samples=0, as_csv=True)
    assert "bleu_1,1.0" in capsys.readouterr().out
