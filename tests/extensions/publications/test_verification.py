"""An honest publication verifies, and planted faults are found and named, whoever mended the digests."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.extensions.publications import forgery
from tests.extensions.publications.conftest import quiet
from vitcapr.errors import UserError
from vitcapr.extensions.publications.deviations import favoured, find_differences
from vitcapr.extensions.publications.verification import Verification, verify

GREEDY, BEAM = "captions/a/greedy/test/captions.json", "captions/a/beam/test/captions.json"
METRICS = "metrics/a/greedy/test/metrics.json"


def verify_again(publication: Path, tmp_path: Path) -> tuple[Verification, str]:
    verified = verify(str(publication), tmp_path / "scratch", quiet())
    numbers = [
        f"{n.row['decoding']} {n.row['metric']}: {n.note}" for n in verified.numbers() if n.status == "different"
    ]
    return verified, "\n".join([*verified.faults, *numbers])


def test_an_honest_publication_verifies(publication: Path, tmp_path: Path) -> None:
    honest, faults = verify_again(publication, tmp_path)
    assert faults == ""
    assert honest.floating == []
    trusted = [number.row["metric"] for number in honest.numbers() if number.status != "equal"]
    assert trusted == ["novel_share", "novel_share"]
    assert {run.stage for run in honest.trusted} == {"data_scenes", "vocabulary", "train_captioner", "train_retriever"}


@pytest.mark.parametrize(("cell", "faults"), [("61.6", []), ("64.6", ["1 values: line 2 61.6, again 64.6"])])
def test_pages_are_compared_by_what_they_say(tmp_path: Path, cell: str, faults: list[str]) -> None:
    """Styles change from version to version."""
    page = "<style>td {{ padding: {} }}</style>\n<body class='{}'><td>CIDEr</td><td>{}</td></body>\n"
    one, other = tmp_path / "one.html", tmp_path / "other.html"
    one.write_text(page.format("4px", "a", "61.6"))
    other.write_text(page.format("0 1rem", "b2", cell))
    assert [each.what for each in find_differences(one, other, None, 0.1) if not each.floating] == faults


def set_score(**values: Any) -> Callable[[Path], None]:
    """A score of the greedy captions, printed everywhere as the forger wants it."""

    def forge(root: Path) -> None:
        forgery.change_json(root / METRICS, lambda metrics: metrics["metrics"]["cider"].update(values))
        forgery.print_again(root)

    return forge


def set_protocol(root: Path) -> None:
    def change(metrics: Any) -> None:
        metrics["protocol"] = metrics["protocol"].replace("samples=50", "samples=1000")

    forgery.change_json(root / METRICS, change)
    forgery.print_again(root)


def print_score(root: Path) -> None:
    text = (root / "summary.csv").read_text(encoding="utf-8")
    line = next(line for line in text.splitlines() if ",greedy,bleu_1," in line)
    words = line.split(",")
    words[6] = "0.99"
    (root / "summary.csv").write_text(text.replace(line, ",".join(words)), encoding="utf-8")


def replace_caption(root: Path) -> None:
    """By the caption of another image, and with honest scores of the forged file."""

    def change(entries: Any) -> None:
        other = next(e for e in entries if e["caption"] != entries[0]["caption"])
        entries[0] |= {name: other[name] for name in ("caption", "tokens", "candidates")}

    forgery.change_json(root / GREEDY, change)
    forgery.score_again(root, "greedy")
    forgery.print_again(root)


def state_likelihood(root: Path) -> None:
    forgery.change_json(root / BEAM, lambda entries: entries[0]["candidates"][1].update(log_prob=-0.5, score=-0.5))


def drop_reference(root: Path) -> None:
    def drop(captions: Any) -> Any:
        return captions.drop(captions.index[(captions["split"] == "test") & (captions["language"] == "zh")][0])

    forgery.change_table(root / "data/captions.parquet", drop)
    manifest = root / "data/manifest.json"
    forgery.change_json(manifest, lambda data: data["counts"].update(captions=data["counts"]["captions"] - 1))


def copy_caption(root: Path) -> None:
    """A caption of the model becomes the reference of its image."""
    entry = json.loads((root / GREEDY).read_text(encoding="utf-8"))[2]

    def change(captions: Any) -> Any:
        own = (captions["image_id"] == entry["image_id"]) & (captions["language"] == "zh")
        captions.loc[own, "text"] = entry["caption"]
        return captions

    forgery.change_table(root / "data/captions.parquet", change)


def move_image(root: Path) -> None:
    """An image of the test split is left out of all lists."""

    def change(table: Any) -> Any:
        last = table["image_id"][table["split"] == "test"].iloc[-1]
        return table.assign(split=table["split"].where(table["image_id"] != last, "none"))

    for name in ("images", "captions"):
        forgery.change_table(root / f"data/{name}.parquet", change)

    def count(data: Any) -> None:
        data["counts"]["splits"]["test"] -= 1
        data["counts"]["splits"]["none"] += 1

    forgery.change_json(root / "data/manifest.json", count)


def change_weight(root: Path) -> None:
    forgery.change_weights(root / "captioners/a/best.safetensors", lambda each: next(iter(each.values())).mul_(1.5))


def change_retriever(root: Path) -> None:
    forgery.change_weights(root / "retrievers/r/best.safetensors", lambda each: next(iter(each.values())).mul_(-1))


def exchange_rows(root: Path) -> None:
    def exchange(rows: Any) -> None:
        rows[[0, 3]] = rows[[3, 0]]

    for name in ("patches", "cls"):
        forgery.change_rows(root / f"features/vit/rows/{name}.npy", exchange)


def pull_closer(root: Path) -> None:
    """The vector of an image becomes that of its caption."""

    def change(arrays: Any) -> None:
        arrays["images"][1] = arrays["captions"][arrays["caption_image"] == 1][0]

    forgery.change_arrays(root / "embeddings/r/test/embeddings.npz", change)


def widen_beam(root: Path) -> None:
    """The captions of a beam are said to be those of a narrower one."""
    path = root.parent / "experiment.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("beam_size: 3", "beam_size: 2"), encoding="utf-8")


FAULTS: dict[Callable[[Path], None], str] = {
    set_score(value=5.148): r"greedy cider: value: printed 5\.148, computed [0-9.]+",
    set_score(low=0.3, high=0.301): r"greedy cider: .*low: printed 0\.3, computed .*high: printed 0\.301",
    set_score(n=13): "greedy cider: .*n: printed 13, computed",
    set_protocol: "protocol: printed .*samples=1000.*computed .*samples=50",
    print_score: r"greedy bleu_1: value: printed 0\.99, computed",
    replace_caption: f"{GREEDY}: 1 captions are not the model's: image 'scene-.*computed again",
    state_likelihood: f"{BEAM}: stated likelihoods are not the model's: image 'scene-.*-0.5000, again",
    drop_reference: r"a/greedy/test/per_image.parquet: 1 values: cider of image 'scene-[0-9]+' [0-9.e-]+, again",
    copy_caption: "per_image.parquet: [0-9]+ values: bleu_1 of image 'scene-",
    move_image: r"not the images|a caption is of an image that is not in the split \(image scene-",
    change_weight: f"{GREEDY}: .* captions are not the model's|{BEAM}: stated likelihoods",
    change_retriever: "embeddings.npz: .* (images|captions) have other vectors",
    exchange_rows: "as if the features were exchanged|captions are not the model's",
    pull_closer: "embeddings.npz: 1 images have other vectors, rows of the data set: [0-9]+",
    widen_beam: "decode/a.beam.test: the settings of its record are not those of experiment.yaml",
}


@pytest.mark.parametrize(("forge", "named"), FAULTS.items(), ids=lambda each: getattr(each, "__qualname__", ""))
def test_planted_faults_are_found_and_named(
    publication: Path, tmp_path: Path, forge: Callable[[Path], None], named: str
) -> None:
    copy = tmp_path / "forged"
    shutil.copytree(publication, copy)
    forge(copy / "experiment")
    forgery.mend(copy)
    _, faults = verify_again(copy, tmp_path)
    assert re.search(named, faults), faults


def test_digests_that_nobody_mended_stop_the_transfer(publication: Path, tmp_path: Path) -> None:
    copy = tmp_path / "damaged"
    shutil.copytree(publication, copy)
    forgery.change_json(copy / "experiment" / METRICS, lambda metrics: metrics["metrics"]["cider"].update(value=5.1))
    with pytest.raises(UserError, match=r"metrics.json.*(checksum|longer than)"):
        verify_again(copy, tmp_path)


@pytest.mark.parametrize("outside", ["results/tiny/../../out.json", "/tmp/out.json"])
def test_a_job_cannot_lead_outside_the_publication(publication: Path, tmp_path: Path, outside: str) -> None:
    copy = tmp_path / "forged"
    shutil.copytree(publication, copy)
    record, captions = copy / "experiment/runs/decode/a.greedy.test.json", f"results/tiny/{GREEDY}"
    forgery.change_json(record, lambda run: run.update(command=run["command"].replace(captions, outside)))
    forgery.mend(copy)
    with pytest.raises(UserError, match=r"not the record of a job: .*(outside|subpath).*a.greedy.test.json"):
        verify_again(copy, tmp_path)


def test_captions_that_only_raise_a_score_are_picked(tmp_path: Path) -> None:
    """Of n equal changes, all upwards, the sum is the root of n standard deviations: 25 are 5, 9 are 3."""
    for name, raised in (("again", 0), ("picked", 25), ("lucky", 9)):
        pd.DataFrame({"cider": [0.1 * (row < raised) for row in range(40)]}).to_parquet(tmp_path / f"{name}.parquet")
    again = tmp_path / "again.parquet"
    assert [one.what[:45] for one in favoured(tmp_path / "picked.parquet", again)] == [
        "the published captions raise cider of 25 imag"
    ]
    assert list(favoured(tmp_path / "lucky.parquet", again)) == []
    assert list(favoured(again, tmp_path / "picked.parquet")) == []
