import json
from pathlib import Path

import pytest

from vitcapr.data.coco import list_coco, list_images, list_karpathy
from vitcapr.data.collect import Checks, check
from vitcapr.data.images import ImageSource
from vitcapr.data.readers import list_data_set
from vitcapr.errors import UserError
from vitcapr.formats.manifest import read_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.progress import Reporter
from vitcapr.stages.data_photographs import data_photographs


def annotations(images: dict[int, str], captions: list[tuple[object, int, str]]) -> str:
    return json.dumps(
        {
            "images": [{"id": number, "file_name": name} for number, name in images.items()],
            "annotations": [{"id": i, "image_id": image, "caption": text} for i, image, text in captions],
        }
    )


TRAIN = annotations({30: "000000000030.jpg", 4: "000000000004.jpg"}, [(7, 30, "Thirty.\n"), (3, 4, "Four.")])
VAL = annotations(
    {500: "000000000500.jpg", 21: "000000000021.jpg", 22: "000000000022.jpg", 23: "000000000023.jpg"},
    [
        (9, 21, "Twenty one."),
        (8, 21, "One more."),
        (18, 21, "A third."),
        (500, 500, "Cut."),
        (11, 22, ""),
        (12, 23, "Lost."),
        (13, 99, "?"),
    ],
)


@pytest.fixture
def coco(tmp_path, picture, write_files):
    return write_files(
        tmp_path / "coco",
        {
            "annotations/captions_train2017.json": TRAIN,
            "annotations/captions_val2017.json": VAL,
            "train2017/000000000030.jpg": picture(),
            "train2017/000000000004.jpg": picture(size=(5, 8)),
            "val2017/000000000500.jpg": b"",
            "val2017/000000000021.jpg": picture((1, 1, 1)),
            "val2017/000000000022.jpg": picture((2, 2, 2)),
        },
    )


def run(output_dir: Path, **coco: object) -> Path:
    run_stage(data_photographs, settings={"coco": coco, "max_rejected": 1}, folder=output_dir)
    return output_dir / "manifest.json"


def files_of(coco: Path, *names: str) -> list[str]:
    return [str(coco / "annotations" / f"captions_{name}.json") for name in names]


def test_images_are_ordered_by_number_and_bad_entries_are_listed(tmp_path, coco):
    path = run(tmp_path / "out", images=str(coco), annotations=files_of(coco, "val2017", "train2017"))
    manifest = read_manifest(path)
    columns = ["image_id", "path", "split", "width", "height"]
    assert manifest.images[columns].to_numpy().tolist() == [
        ["4", "train2017/000000000004.jpg", "train", 5, 8],
        ["21", "val2017/000000000021.jpg", "validation", 6, 4],
        ["30", "train2017/000000000030.jpg", "train", 6, 4],
    ]
    assert manifest.captions.drop(columns="image_row").to_numpy().tolist() == [
        ["3", "4", "en", "Four.", "train"],
        ["9", "21", "en", "Twenty one.", "validation"],
        ["8", "21", "en", "One more.", "validation"],
        ["18", "21", "en", "A third.", "validation"],
        ["7", "30", "en", "Thirty.", "train"],
    ]
    header, *rejected = (tmp_path / "out" / "rejected.csv").read_text().splitlines()
    assert header == "item,reason"
    assert rejected == [
        "11,empty caption",
        "12,caption of an image left out",
        "13,caption without an image",
        "22,image without a caption",
        "23,no such file",
        "500,caption of an image left out",
        "500,empty file",
    ]


def test_ids_that_are_no_numbers_come_first(tmp_path: Path) -> None:
    images = [{"id": name, "file_name": f"{name}.jpg"} for name in ("10", "b", "2", "a")]
    file = tmp_path / "captions_train2014.json"
    file.write_text(json.dumps({"images": images, "annotations": []}))
    assert list_coco([], {file: "train"}).images["image_id"].tolist() == ["a", "b", "2", "10"]


def test_one_folder_of_photographs_gives_the_same_rows(tmp_path, coco):
    files = files_of(coco, "val2017")
    whole = read_manifest(run(tmp_path / "a", images=str(coco), annotations=files))
    bare = read_manifest(run(tmp_path / "b", images=str(coco / "val2017"), annotations=files))
    assert bare.images["path"].tolist() == ["000000000021.jpg"]
    assert whole.images.drop(columns="path").equals(bare.images.drop(columns="path"))


def test_files_that_share_an_image_would_leak(coco, write_files):
    write_files(coco / "annotations", {"captions_val2014.json": TRAIN})
    files = [coco / "annotations" / f"captions_{name}.json" for name in ("train2017", "val2014")]
    with pytest.raises(
        UserError, match=r"image 30 is also in captions_train2017\.json, in another split .*of one year"
    ):
        list_coco([], dict(zip(files, ("train", "validation"), strict=True)))
    assert list_coco([], dict.fromkeys(files)).images["image_id"].tolist() == ["4", "30"]
    files[1].write_text(TRAIN.replace("000000000030", "COCO_train2014_000000000030"))
    with pytest.raises(UserError, match=r"image 30 is also in captions_train2017\.json, as '000000000030.jpg'"):
        list_coco([], dict.fromkeys(files))


def test_ids_are_local_to_the_files_of_the_splits(tmp_path, picture, write_files):
    """Every file counts its images and its annotations from 0; one annotation does not count."""
    files = {}
    for number, split in enumerate(("train", "val", "test")):
        names = {image: f"{split}{image}.jpg" for image in range(2)}
        content = json.loads(annotations(names, [(0, image, f"{split} {image}") for image in range(2)]))
        content["annotations"].append({"id": 9, "image_id": 0, "caption": "Severe.", "is_rejected": True})
        files |= {f"{split}.json": json.dumps(content)}
        files |= {f"photos/{name}": picture((80 * number, 99 * image, 9)) for image, name in names.items()}
    write_files(tmp_path, files)
    table = {
        "images": str(tmp_path / "photos"),
        "captions": [str(tmp_path / f"{s}.json") for s in ("train", "val", "test")],
    }
    run_stage(data_photographs, settings={"table": table}, folder=tmp_path / "out")
    manifest = read_manifest(tmp_path / "out/manifest.json")
    assert manifest.images["split"].value_counts().to_dict() == {"train": 2, "validation": 2, "test": 2}
    assert dict(zip(manifest.captions["caption_id"], manifest.captions["text"], strict=True)) == {
        f"{split}{image}.jpg#0": f"{split} {image}" for split in ("train", "val", "test") for image in range(2)
    }
    assert (tmp_path / "out/rejected.csv").read_text().count("9,its file says is_rejected: true") == 3


def karpathy_image(number: int, split: str, folder: str = "val2014") -> dict[str, object]:
    return {
        "cocoid": number,
        "filepath": folder,
        "filename": f"COCO_{folder}_{number:012d}.jpg",
        "split": split,
        "sentences": [{"sentid": 10 * number + i, "raw": f"Caption {i} of {number}."} for i in range(2)],
    }


def test_karpathys_split(tmp_path, picture, write_files):
    listed = [(42, "test"), (8, "restval"), (17, "val"), (3, "train"), (3, "test")]
    photographs = {f"COCO_val2014_{number:012d}.jpg": picture() for number, _ in listed}
    write_files(tmp_path / "coco" / "val2014", photographs)
    content = json.dumps({"images": [karpathy_image(number, name) for number, name in listed], "dataset": "coco"})
    write_files(tmp_path, {"dataset_coco.json": content})
    path = run(
        tmp_path / "out",
        images=str(tmp_path / "coco"),
        karpathy=str(tmp_path / "dataset_coco.json"),
    )
    manifest = read_manifest(path)
    assert manifest.images[["image_id", "split"]].to_numpy().tolist() == [
        ["3", "train"],
        ["8", "train"],
        ["17", "validation"],
        ["42", "test"],
    ]
    assert manifest.images["path"][0] == "val2014/COCO_val2014_000000000003.jpg"
    assert manifest.captions["caption_id"].tolist() == ["30", "31", "80", "81", "170", "171", "420", "421"]
    assert manifest.captions["text"][0] == "Caption 0 of 3."
    assert (tmp_path / "out" / "rejected.csv").read_text() == "item,reason\n3,duplicate image id\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("captions_trainval2014.json", VAL, "the file name does not tell whether it is train or val"),
        ("instances_val2017.json", '{"images": [], "annotations": [{"id": 1, "image_id": 1}]}', "has no 'caption'"),
        ("captions_val2017.json", '{"info": {}}', "it has no 'images'"),
        ("captions_val2017.json", "[]", "not a caption file of COCO: .*not instances_"),
        ("captions_val2017.json", "{", "not a JSON file"),
        ("captions_val2017.json", "[" * 100_000, "not a JSON file"),
    ],
)
def test_a_foreign_annotation_file_is_named(tmp_path, write_files, name, content, message):
    write_files(tmp_path, {name: content})
    with pytest.raises(UserError, match=message) as caught, ImageSource(tmp_path) as source:
        list_images(source, [], annotations=[str(tmp_path / name)], karpathy=None)
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"annotations": []}, r"data\.coco\.annotations is not set"),
        ({"annotations": ["captions_val2017.json"]}, r"data\.coco\.annotations: no such file \(captions_val2017"),
        ({"karpathy": "gone.json"}, r"data\.coco\.karpathy: no such file \(gone\.json\)"),
        ({"karpathy": "foreign.json"}, r"data\.coco\.karpathy: not the file dataset_coco\.json: it has no 'cocoid'"),
    ],
)
def test_a_wrong_path_names_its_key(tmp_path, monkeypatch, coco, change, message):
    monkeypatch.chdir(tmp_path)
    Path("foreign.json").write_text('{"images": [{"filename": "a.jpg", "split": "train"}]}')
    with pytest.raises(UserError, match=message):
        run(tmp_path / "out", images=str(coco), **change)


@pytest.mark.data
def test_the_real_coco_captions(tmp_path, real_data):
    """val2017 lists 5,000 images; those that are not on this disk are rejected one by one."""
    coco = real_data / "coco"
    photographs = len(list((coco / "val2017").glob("*.jpg")))
    manifest = read_manifest(run(tmp_path, images=str(coco), annotations=files_of(coco, "val2017")))
    assert len(manifest.images) == photographs
    assert set(manifest.images["split"]) == {"validation"}
    assert manifest.captions.groupby("image_id").size().min() >= 5
    rejected = (tmp_path / "rejected.csv").read_text().splitlines()
    assert len([line for line in rejected if line.endswith(",no such file")]) == 5000 - photographs


@pytest.mark.parametrize(
    ("old", "new", "item", "reason"),
    [
        ('"id": 4,', '"id": 4.5,', "000000000004.jpg", "'id' is 4.5, not of type int or str"),
        ('"id": 4,', '"id": true,', "000000000004.jpg", "'id' is True, not of type int or str"),
        ('"file_name": "000000000004.jpg"', '"coco_url": 1', "4", "it has no 'file_name'"),
        (
            '{"id": 4, "file_name": "000000000004.jpg"}',
            "null",
            "captions_train2017.json images[1]",
            "not a JSON object",
        ),
        ('"Four."', "null", "3", "'caption' is None, not of type str"),
        ('"Four."', "NaN", "3", "'caption' is None, not of type str"),
        ('"Four."', '["Four."]', "3", "'caption' is ['Four.'], not of type str"),
        ('"image_id": 4', '"image_id": [4]', "3", "'image_id' is [4], not of type int or str"),
        ('"id": 3,', '"id": {},', "captions_train2017.json annotations[1]", "'id' is {}, not of type int or str"),
    ],
)
def test_an_odd_entry_is_left_out_and_listed(coco, old, new, item, reason):
    file = coco / "annotations/captions_train2017.json"
    assert TRAIN.count(old) == 1
    file.write_text(TRAIN.replace(old, new), encoding="utf-8-sig")
    listing = list_coco(["train2017/000000000004.jpg"], {file: None})
    ((listed, why),) = listing.rejected
    assert listed == item
    assert why.startswith(reason)
    assert listing.captions["text"][0] == "Thirty."


def test_fields_that_are_not_read_may_hold_anything(coco):
    file = coco / "annotations/captions_train2017.json"
    odd = TRAIN.replace('"id": 3,', '"id": 3, "score": NaN, "bbox": [[{}]], "split": null, "tokens": -Infinity,')
    file.write_text(odd.replace('"id": 4,', '"id": 4, "split": null, "license": {},'))
    assert list(list_coco([], {file: None}).rejected) == []


def test_so_many_odd_entries_stop_the_stage(coco):
    """Of three annotations, one has no text: a third is more than a tenth. The file itself is sound."""
    file = coco / "annotations/captions_train2017.json"
    entry = {"id": 5, "image_id": 4, "caption": None}
    file.write_text(json.dumps({**json.loads(TRAIN), "annotations": [*json.loads(TRAIN)["annotations"], entry]}))
    message = "1 of 3 rows of captions cannot be used, '5' first: 1 x 'caption' is None.* raise data.max_rejected"
    keys = {"annotations": [str(file)], "karpathy": None}
    with Reporter() as reporter, list_data_set("coco", str(coco), **keys) as (source, listing):
        check(listing, source, Checks(max_rejected=0.34), reporter)
        with pytest.raises(UserError, match=message):
            check(listing, source, Checks(), reporter)


@pytest.mark.parametrize(
    ("old", "new", "item", "reason"),
    [
        ('"Caption 0 of 3."', "null", "30", "'raw' is None, not of type str"),
        ('"sentid": 30', '"sentid": "x"', "x", "'sentid' is 'x', not of type int"),
        ('"split": "train"', '"split": "tarin"', "3", "unknown split 'tarin'"),
        ('"cocoid": 3', '"cocoid": null', "COCO_val2014_000000000003.jpg", "'cocoid' is None, not of type int"),
        ('"filepath": "val2014", "filename": "COCO_val2014_000000000003.jpg"', '"x": 0', "3", "it has no 'filename'"),
    ],
)
def test_an_odd_entry_of_karpathys_file_is_listed(tmp_path, old, new, item, reason):
    file = tmp_path / "dataset_coco.json"
    content = json.dumps({"images": [karpathy_image(3, "train"), karpathy_image(8, "val")]})
    assert content.count(old) == 1
    file.write_text(content.replace(old, new), encoding="utf-8-sig")
    listing = list_karpathy([], file)
    assert list(listing.rejected) == [(item, reason)]
    assert "Caption 1 of 8." in list(listing.captions["text"])
