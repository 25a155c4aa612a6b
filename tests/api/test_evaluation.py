"""Scores of any system's captions and embeddings, from COCO's files as they are."""

import json
import os
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

import vitcapr
from tests.data_sets import coco_captions
from vitcapr.api.evaluation import METRICS
from vitcapr.errors import UserError
from vitcapr.metrics.java import JAVA

CAPTIONS = {139: "A woman cooks in a kitchen.", 285: "A bear\nsits on the grass!", 632: "A bed, and a chair."}
OTHER = {139: "Somebody stands in a room.", 285: "A bear sits on the grass!", 632: "A dog runs."}
REFERENCES = {
    139: ["A woman stands in the kitchen.", "A lady is cooking dinner.\n"],
    285: ["A big bear sits in the grass.", "A brown bear sitting on grass."],
    632: ["A bedroom with a bed and a chair.", "A bed next to a window."],
    724: ["A stop sign at a corner.", "A red sign."],
}


def results(path: Path, captions: dict[int, str]) -> Path:
    path.write_text(json.dumps([{"image_id": image, "caption": text} for image, text in captions.items()]))
    return path


def annotations(path: Path) -> Path:
    path.write_text(json.dumps({"info": {}, **coco_captions({139: "coco/139.jpg"}, REFERENCES)}))
    return path


def value(found: Any, name: str) -> float:
    return float(found.scores.set_index("metric").loc[name, "value"])


def test_files_of_coco_give_the_scores_of_its_own_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """METEOR is compared in tests/metrics/test_captions.py."""
    monkeypatch.setenv("PATH", f"{Path(JAVA).parent}{os.pathsep}{os.environ['PATH']}")
    files = str(results(tmp_path / "results.json", CAPTIONS)), annotations(tmp_path / "refs.json")
    found = vitcapr.evaluate(*files, metrics=["bleu", "rouge_l", "cider"])
    of_coco = {image: [{"caption": text}] for image, text in CAPTIONS.items()}
    of_references = {image: [{"caption": text} for text in REFERENCES[image]] for image in CAPTIONS}
    candidates, references = (PTBTokenizer().tokenize(each) for each in (of_coco, of_references))
    bleus, _ = Bleu().compute_score(references, candidates, verbose=0)
    expected = {f"bleu_{order}": score for order, score in enumerate(bleus, 1)}
    for name, scorer in (("rouge_l", Rouge()), ("cider", Cider())):
        expected[name] = scorer.compute_score(references, candidates)[0]
    assert found.scores["metric"].tolist() == list(expected)
    for name, score in expected.items():
        assert value(found, name) == pytest.approx(score, abs=1e-6)
    assert (found.scores["low"] <= found.scores["value"]).all()
    assert found.without_captions == 1
    assert found.per_image["image_id"].tolist() == ["139", "285", "632"]
    assert "refs:2|images:3" in found.protocol


def test_differences_of_two_systems_are_paired() -> None:
    found = vitcapr.evaluate(CAPTIONS, REFERENCES, against=OTHER, metrics=["cider", "rouge_l"], samples=100)
    rows = found.differences.set_index("metric")
    assert rows.index.tolist() == ["rouge_l", "cider"]
    assert rows.loc["cider", "after"] == value(found, "cider")
    assert rows.loc["cider", "before"] == value(vitcapr.evaluate(OTHER, REFERENCES, metrics=["cider"]), "cider")
    assert rows.loc["cider", "difference"] == pytest.approx(rows.loc["cider", "after"] - rows.loc["cider", "before"])
    same = vitcapr.evaluate(CAPTIONS, REFERENCES, against=CAPTIONS, metrics=["cider"], samples=100).differences
    assert same[["difference", "low", "high"]].to_numpy().tolist() == [[0, 0, 0]]


def test_captions_that_the_references_chose_are_no_result(tmp_path: Path) -> None:
    entries = [{"image_id": "139", "caption": "a cat", "oracle": "sentence CIDEr"}]
    (tmp_path / "oracle.json").write_text(json.dumps(entries))
    found = vitcapr.evaluate(tmp_path / "oracle.json", REFERENCES, metrics=["bleu"], samples=0)
    assert found.protocol.startswith("ORACLE, NOT A RESULT")
    assert found.scores["low"].isna().all()


def test_a_file_name_of_the_annotations_is_its_image(tmp_path: Path) -> None:
    references = annotations(tmp_path / "refs.json")
    by_name = vitcapr.evaluate({"val2017/139.jpg": CAPTIONS[139]}, references, metrics=["bleu"], samples=0)
    assert by_name.scores.equals(vitcapr.evaluate({139: CAPTIONS[139]}, references, metrics=["bleu"], samples=0).scores)
    with pytest.raises(UserError, match=r"'139.jpg' and '139' are both the image"):
        vitcapr.evaluate({"139.jpg": "a", 139: "b"}, references, metrics=["bleu"], samples=0)
    # It is not the id of another image.
    references.write_text(json.dumps(coco_captions({1: "0.jpg", 2: "1.jpg"}, {1: ["a"], 2: ["b c"]})))
    scored = vitcapr.evaluate({"1.jpg": "b c"}, references, metrics=["bleu"], samples=0)
    assert scored.per_image["image_id"].tolist() == ["2"]
    with pytest.raises(UserError, match=r"1 of 1 captions are of images that have no reference .*image 2.jpg"):
        vitcapr.evaluate({"2.jpg": "b c"}, references, metrics=["bleu"])


def test_a_caption_goes_to_the_image_of_its_path(tmp_path: Path) -> None:
    """Six images of two folders with the same file names; the captions are references of the first three."""
    texts = {
        number: [f"a {word} in the street"] for number, word in enumerate(["dog", "cat", "bus", "cow", "car", "sea"])
    }
    files = {number: f"{'val' if number > 2 else 'train'}/{number % 3}.jpg" for number in texts}
    (tmp_path / "refs.json").write_text(json.dumps(coco_captions(files, texts)))
    given = {files[number]: texts[number][0] for number in (0, 1, 2)}
    scored = vitcapr.evaluate(given, tmp_path / "refs.json", metrics=["bleu"], samples=0)
    assert value(scored, "bleu_4") == pytest.approx(1)
    assert scored.per_image["image_id"].tolist() == ["0", "1", "2"]
    with pytest.raises(UserError, match=r"'1.jpg' may be the image '1' called 'train/1.jpg' or '4' .* \(the cap"):
        vitcapr.evaluate({"1.jpg": "a cat"}, tmp_path / "refs.json", metrics=["bleu"])


@pytest.mark.parametrize(
    "captions",
    [
        {image: [text] for image, text in CAPTIONS.items()},
        pd.Series(CAPTIONS),
        {str(image): (text + "\ud83d",) for image, text in CAPTIONS.items()},
    ],
)
def test_forms_of_captions(captions: Any) -> None:
    given = {"metrics": ["bleu"], "samples": 0}
    assert vitcapr.evaluate(captions, REFERENCES, **given).scores.equals(
        vitcapr.evaluate(CAPTIONS, REFERENCES, **given).scores
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_text_is_one_reference(language: str) -> None:
    captions, references = (
        {0: "一只狗 a dog", 1: "公交车 a bus"},
        {0: "一只狗在跑 one dog runs", 1: "一辆公交车 the bus"},
    )
    lists = {image: [text] for image, text in references.items()}
    given = {"metrics": ["bleu", "cider"], "samples": 0, "language": language}
    text, several = (vitcapr.evaluate(captions, each, **given) for each in (references, lists))
    assert text.scores.equals(several.scores)
    assert "refs:1|" in text.protocol


@pytest.mark.parametrize(
    ("captions", "references", "message"),
    [
        ([], REFERENCES, "there is no caption to score"),
        ([{"image_id": 139}], REFERENCES, "not a results file of COCO.*0.caption"),
        ([{"image_id": 1, "caption": None}], REFERENCES, "COCO, .*: image_id 1: 0.caption: Input should be a valid"),
        ([{"image_id": 139, "caption": "a"}] * 2, REFERENCES, "an image has two captions .*image 139"),
        ({1: "a cat", 139: "b"}, REFERENCES, "1 of 2 captions are of images that have no reference .*image 1"),
        ({139: "a", "139": "b"}, REFERENCES, "an image is there twice .*image 139"),
        ({139: ["a", "b"]}, REFERENCES, "2 captions of an image .*image 139"),
        ({139: None}, REFERENCES, "None is no text .*image 139"),
        ({139: float("nan")}, REFERENCES, "nan is no text .*image 139"),
        ({139: "\ud83d"}, REFERENCES, "an empty caption cannot be scored .*image 139"),
        ({139: "a"}, {139: ["b", None]}, "None is no text .the references, image 139"),
        ({139: "a"}, {139: {"caption": "b"}}, "is no text .the references, image 139"),
        ({139: "a"}, {139: ["b"], "139": ["c"]}, "an image is there twice .the references, image 139"),
        (pd.DataFrame({"caption": ["a"]}), REFERENCES, "the captions are a DataFrame"),
        ({139: " "}, REFERENCES, "an empty caption cannot be scored .*image 139"),
        ({139: "..."}, REFERENCES, "no word in it .*image 139"),
        ({139: "a"}, {139: []}, "no reference of an image has a word .*image 139"),
        ({139: "a"}, {139: ["", " "]}, "no reference of an image has a word .*image 139"),
    ],
)
def test_a_mistake_is_one_line(captions: Any, references: Any, message: str, tmp_path: Path) -> None:
    if isinstance(captions, list):
        (tmp_path / "results.json").write_text(json.dumps(captions))
        captions = tmp_path / "results.json"
    with pytest.raises(UserError, match=message) as caught:
        vitcapr.evaluate(captions, references, metrics=["bleu"], samples=0)
    assert "\n" not in str(caught.value)


def test_references_in_other_forms_and_that_do_not_count(tmp_path: Path) -> None:
    rows = [(image, text) for image, texts in REFERENCES.items() for text in texts]
    objects = [{"image_id": image, "caption": text} for image, text in rows]
    odd = [
        {"image_id": 7, "caption": "Severe.", "is_rejected": True},
        {**objects[0], "caption": "x", "is_precanned": True},
    ]
    contents = {
        "lists.json": json.dumps({str(image): texts for image, texts in REFERENCES.items()}),
        "lines.jsonl": "\n".join(map(json.dumps, objects)),
        "list.json": json.dumps(objects),
        "table.tsv": "image_id\tcaption\n" + "\n".join(f"{image}\t{text.strip()}" for image, text in rows),
        "marked.json": json.dumps({"annotations": [*objects, *odd]}),
    }
    plain = vitcapr.evaluate(CAPTIONS, REFERENCES, metrics=["bleu"], samples=0)
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
        captions = {**CAPTIONS, 7: "a dog"} if name == "marked.json" else CAPTIONS
        scored = vitcapr.evaluate(captions, tmp_path / name, metrics=["bleu"], samples=0)
        assert scored.scores.equals(plain.scores), name
        assert any("1 images are not scored" in remark for remark in scored.remarks) == (name == "marked.json")


def test_one_id_of_two_images_is_refused(tmp_path: Path) -> None:
    category = {"categories": [{"id": 1, "name": "dog"}], "annotations": [{"image_id": 139, "category_id": 1}]}
    for name in ("train", "val"):
        images = {"images": [{"id": 139, "file_name": f"{name}/1.jpg"}], **category}
        (tmp_path / f"{name}.json").write_text(json.dumps(images))
    given = [tmp_path / "train.json", tmp_path / "val.json"]
    with pytest.raises(UserError, match=r"image 139 is 'train/1.jpg' and 'val/1.jpg' \(.*val.json\)"):
        vitcapr.evaluate({139: "a dog"}, REFERENCES, instances=given)


def test_tensors_are_arrays() -> None:
    values = torch.eye(3, requires_grad=True)
    scored = vitcapr.evaluate_retrieval(values, values.bfloat16(), samples=0)
    assert scored.scores.equals(vitcapr.evaluate_retrieval(np.eye(3), np.eye(3), samples=0).scores)


def test_other_mistakes(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"different images .*image 632"):
        vitcapr.evaluate(CAPTIONS, REFERENCES, against={139: "a", 285: "b"}, metrics=["bleu"], samples=0)
    with pytest.raises(UserError, match="no metric is called 'belu'; there are bleu"):
        vitcapr.evaluate(CAPTIONS, REFERENCES, metrics=["belu"])
    (tmp_path / "instances.json").write_text('{"annotations": [{"image_id": 1, "bbox": [0, 0, 1, 1]}]}')
    with pytest.raises(UserError, match=r"not an annotations file of COCO.*caption"):
        vitcapr.evaluate(CAPTIONS, tmp_path / "instances.json")
    assert METRICS == ("bleu", "meteor", "rouge_l", "cider")


def test_recall_by_hand(tmp_path: Path) -> None:
    """Three images, two texts each; the texts of image 2 lie nearest to image 0. Lengths do not count."""
    images = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    texts = np.array([[5, 0, 0], [1, 0.1, 0], [0, 2, 0], [0, 3, 0], [3, 0, 1], [9, 0, 4]])
    np.save(tmp_path / "images.npy", images)
    np.save(tmp_path / "texts.npy", texts)
    found = vitcapr.evaluate_retrieval(tmp_path / "images.npy", str(tmp_path / "texts.npy"), captions_per_image=2)
    assert value(found, "i2t_recall_1") == 1
    assert value(found, "t2i_recall_1") == pytest.approx(4 / 6)
    assert value(found, "t2i_mean_rank") == pytest.approx((4 * 1 + 2 * 2) / 6)
    turned = np.array([2, 2, 1, 1, 0, 0])
    again = vitcapr.evaluate_retrieval(images, texts[::-1], image_of_text=turned)
    assert again.scores.equals(found.scores)
    worse = texts[[2, 3, 0, 1, 4, 5]]  # Images 0 and 1 have each other's texts.
    compared = vitcapr.evaluate_retrieval(images, texts, captions_per_image=2, against=(images, worse)).differences
    assert compared is not None
    row = compared.set_index("metric").loc["t2i_recall_1"]
    assert (row["before"], row["after"]) == (0, pytest.approx(4 / 6))
    assert row["difference"] == pytest.approx(4 / 6)
    with pytest.raises(UserError, match="the systems have 3 images and 6 texts and 1 images and 2 texts"):
        vitcapr.evaluate_retrieval(images, texts, captions_per_image=2, against=(images[:1], texts[:2]))


def test_embeddings_of_other_images_stop() -> None:
    images = np.random.default_rng(0).normal(size=(60, 16))
    texts = np.repeat(images, 3, axis=0) + np.random.default_rng(1).normal(size=(180, 16))
    right = vitcapr.evaluate_retrieval(images, texts, captions_per_image=3, samples=0)
    assert right.content.startswith("embeddings belong together, by 180 rows")
    by_number = texts.reshape(60, 3, 16).swapaxes(0, 1).reshape(180, 16)
    wrong = {
        r"they fit text 1 of each image, text 2 of each image, .*numpy.tile\(range\(60\), 3\)": (images, by_number),
        "they fit shifted by one": (np.roll(images, 1, axis=0), texts),
        "no better than chance": (np.random.default_rng(2).permutation(images), texts),
    }
    for words, (one, other) in wrong.items():
        with pytest.raises(UserError, match=words):
            vitcapr.evaluate_retrieval(one, other, captions_per_image=3, samples=0)
    with pytest.raises(UserError, match="they fit shifted by one"):
        vitcapr.evaluate_retrieval(
            images, texts, captions_per_image=3, samples=0, against=(np.roll(images, 1, axis=0), texts)
        )
    unchecked = vitcapr.evaluate_retrieval(images, by_number, captions_per_image=3, samples=0, content_check=False)
    assert unchecked.protocol.endswith("|content:unchecked")
    with pytest.raises(UserError, match=r"each image stands in 3 equal rows.*images\[::3\]"):
        vitcapr.evaluate_retrieval(images.repeat(3, axis=0), texts, samples=0)
    untrained = vitcapr.evaluate_retrieval(images, np.random.default_rng(3).normal(size=(60, 16)), samples=0)
    assert "are not decided" in untrained.content


def test_captions_of_other_images_stop() -> None:
    drawn = np.random.default_rng(0)
    words = [[f"w{word}" for word in drawn.integers(0, 200, 6)] for _ in range(60)]
    texts = {f"{row:02d}": [" ".join(drawn.permutation(six)[:5]) for _ in range(4)] for row, six in enumerate(words)}
    references = {image: three[1:] for image, three in texts.items()}
    captions = [four[0] for four in texts.values()]
    score = partial(vitcapr.evaluate, references=references, metrics=["bleu"], samples=0)
    assert "belong together, by 60 rows" in score(dict(zip(texts, captions, strict=True))).content
    with pytest.raises(UserError, match="they fit shifted by one "):
        score(dict(zip(texts, captions[1:] + captions[:1], strict=True)))
    right = dict(zip(texts, captions, strict=True))
    with pytest.raises(UserError, match=r"they fit shifted by one .*the other captions"):
        score(right, against=dict(zip(texts, captions[1:] + captions[:1], strict=True)))
    shuffled = dict(zip(texts, drawn.permutation(captions).tolist(), strict=True))
    with pytest.raises(UserError, match="no better than chance"):
        score(shuffled)
    assert "content:unchecked" in score(shuffled, content_check=False).protocol
    collapsed = score(dict.fromkeys(texts, "w1 w2"))  # One caption for all is a bad model, and no wrong order.
    assert "belong" in collapsed.content or "not decided" in collapsed.content


def test_marks_of_a_tokenizer_are_noticed() -> None:
    marked = {**CAPTIONS, 139: "<start> a cat <end>"}
    scored = vitcapr.evaluate(marked, REFERENCES, against=CAPTIONS, metrics=["bleu"], samples=0)
    what = "have marks of a tokenizer or of HTML, which count as words; '<start>' is the first"
    assert scored.remarks == [f"captions: 1 of 3 captions {what}"]
    # By what they are: every word of SentencePiece is new to the references.
    pieces = {image: "▁" + text.replace(" ", " ▁") for image, text in CAPTIONS.items()}
    marks, words = vitcapr.evaluate(pieces, REFERENCES, metrics=["bleu"], samples=0).remarks
    assert marks.startswith("captions: 3 of 3 captions have marks of a tokenizer")
    assert words.endswith("words of the captions are in no reference, '▁a' first")


def test_references_as_captions_are_noticed() -> None:
    copied = {image: texts[0] for image, texts in REFERENCES.items()}
    (remark,) = vitcapr.evaluate({**copied, 285: "A bear."}, REFERENCES, metrics=["bleu"], samples=0).remarks
    assert remark.startswith("3 of 4 captions are references of their image, word for word; ")


@pytest.mark.parametrize(
    ("images", "texts", "options", "message"),
    [
        (np.ones((2, 3)), np.ones((4, 2)), {}, "3 dimensions and the texts 2"),
        (np.ones((2, 3)), np.ones((4, 3)), {}, "4 texts are not 1 for each of 2 images; give --captions-per-image 2"),
        (np.ones((2, 3)), np.ones((5, 3)), {}, "give --image-of-text"),
        (np.ones(3), np.ones((4, 3)), {}, r"the image embeddings are float64 of shape \(3,\)"),
        (np.array([[1, 0], [0, 0]]), np.ones((2, 2)), {}, r"row 1, which is zero"),
        (np.array([[1, 0], [np.nan, 0]]), np.ones((2, 2)), {}, r"row 1, which is not finite"),
        (np.ones((2, 2)), np.ones((2, 2)), {"image_of_text": [0, 2]}, "belongs to image 2; the images are 0 to 1"),
        (np.ones((2, 2)), np.ones((2, 2)), {"image_of_text": [0.0, 1.0]}, "give 2 whole numbers"),
        (np.ones((2, 2)), np.ones((2, 2)), {"image_of_text": [0, 0]}, "an image has no caption"),
        (np.ma.masked_less(np.eye(2), 1), np.eye(2), {}, "the image embeddings are a masked array"),
        ("absent.npy", np.ones((2, 2)), {}, "no such file"),
        ([[1, 0], [1]], np.ones((2, 2)), {}, "not numbers: .*the image embeddings"),
        (np.ones((2, 2)), np.ones((2, 2)), {"captions_per_image": 0}, "2 texts are not 0 for each of 2 images"),
    ],
)
def test_embeddings_that_do_not_fit(images: Any, texts: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        vitcapr.evaluate_retrieval(images, texts, samples=0, **options)
