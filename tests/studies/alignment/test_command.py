"""The comparison of alignments on two stores: from the command to its tables, scores and figure."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.commands.stores import write_store
from vitcapr.errors import UserError
from vitcapr.store.reader import open_features
from vitcapr.studies.alignment.commands import align

IMAGES, PATCHES, WIDTH = 200, 4, 8
NAMES = [f"image{number}.jpg" for number in range(IMAGES)]
CAPTIONS = [f"{name}#{number}" for name in NAMES for number in range(2)]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Texts are a turned copy of their image with some noise; half of what they tell is in the patches alone."""
    root = tmp_path_factory.mktemp("aligned")
    draw = np.random.default_rng(0)
    cause = draw.normal(size=(IMAGES, 2 * WIDTH))
    cls = cause[:, :WIDTH].astype(np.float32)
    patches = cause[:, None, WIDTH:] + draw.normal(size=(IMAGES, PATCHES, WIDTH))
    texts = np.repeat(cause @ draw.normal(size=(2 * WIDTH, 12)), 2, axis=0)
    texts = (texts + 0.05 * draw.normal(size=texts.shape)).astype(np.float32)
    arrays = {"cls": cls, "patches": patches.astype(np.float32), "cls_6": cls}
    return (
        write_store(root / "images", arrays, NAMES, "image_id"),
        write_store(root / "texts", {"text": texts}, CAPTIONS, "caption_id"),
    )


def test_words_tell_what_the_sentence_encoder_lost(stores: tuple[Path, Path], tmp_path: Path) -> None:
    """A word for the sign of each dimension of CLS: with the words, ten images are told apart better."""
    cls = np.asarray(open_features(stores[0])["cls"], np.float32)
    signs = [" ".join(f"dimension{'abcdefgh'[d]}" for d in np.flatnonzero(row > 0)) or "none" for row in cls]
    pairs = tmp_path / "pairs.csv"
    split = ["train"] * 120 + ["validation"] * 30 + ["test"] * 50
    table(split).assign(text=np.repeat(signs, 2)).to_csv(pairs, index=False)
    given = {"inputs": ["cls", "cls+words"], "families": "cca", "sizes": "60"}
    align.main(*stores, tmp_path / "out", pairs=pairs, seeds=1, **given)  # type: ignore[arg-type]
    scores = pd.read_csv(tmp_path / "out" / "scores.csv").set_index("system")
    assert scores["t2i_recall_1"]["cca (cls+words)"] > scores["t2i_recall_1"]["cca (cls)"]
    page = (tmp_path / "out" / "tables.md").read_text()
    assert "Inputs: cls, cls+words. " in page
    assert "The directions of the words are fitted to all training captions." in page


def table(split: list[str]) -> pd.DataFrame:
    owner = [name.partition("#")[0] for name in CAPTIONS]
    return pd.DataFrame({"image_id": owner, "caption_id": CAPTIONS, "split": np.repeat(split, 2)})


def test_it_compares_families_inputs_and_sizes(
    stores: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = tmp_path / "pairs.parquet"
    table(["train"] * 120 + ["validation"] * 30 + ["test"] * 40 + ["none"] * 10).to_parquet(pairs)
    align.main(
        *stores,
        tmp_path / "out",
        inputs=["cls", "cls+patches"],
        pairs=pairs,
        families="linear@cls,cca,procrustes",
        sizes="50,all",
        seeds=2,
        query_bank=True,
    )
    printed = capsys.readouterr().out
    assert "mutual kNN" in printed
    assert "40 test images with 80 captions" in printed
    scores = pd.read_csv(tmp_path / "out" / "scores.csv")
    families = ("linear (cls)", "cca (cls)", "procrustes (cls)", "cca (cls+patches)", "procrustes (cls+patches)")
    assert set(scores["system"]) == {family + bank for family in families for bank in ("", ", query bank")}
    runs = scores.groupby(["system", "pairs"]).size()
    assert runs["linear (cls)", 240] == 2
    assert runs["cca (cls)", 50] == 2
    assert runs["cca (cls)", 240] == 1
    recall = scores[scores["pairs"] == 240].groupby("system")["t2i_recall_1"].mean()
    assert recall["cca (cls+patches)"] > recall["cca (cls)"]
    differences = pd.read_csv(tmp_path / "out" / "differences.csv")
    assert "linear (cls)" not in set(differences["system"])
    one = differences[(differences["system"] == "cca (cls+patches)") & (differences["pairs"] == 240)]
    expected = recall["cca (cls+patches)"] - recall["linear (cls)"]
    assert one.set_index("score")["difference"]["t2i_recall_1"] == pytest.approx(expected)
    assert (differences["low"] <= differences["difference"]).all()
    assert "### 240 pairs" in (tmp_path / "out" / "tables.md").read_text()
    assert (tmp_path / "out" / "recall.png").stat().st_size > 1000


def test_without_the_linear_head_there_are_no_differences(stores: tuple[Path, Path], tmp_path: Path) -> None:
    align.main(*stores, tmp_path / "out", families="ridge", sizes="all")
    page = (tmp_path / "out" / "tables.md").read_text()
    assert "| system | runs | I→T R@1 | I→T R@10 | T→I R@1 | T→I R@10 | CPU s |" in page
    assert "Differences" not in page
    assert pd.read_csv(tmp_path / "out" / "differences.csv").empty


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"families": "cca,pca"}, "no family 'pca'"),
        ({"families": "cca@patches"}, "no inputs 'patches'"),
        ({"sizes": "100,5"}, "sizes.1"),
        ({"sizes": "100,many"}, "sizes.1"),
        ({"sizes": "100000", "families": "cca"}, "100,000 pairs of"),
        ({"inputs": ["cls+depth"]}, r"no image input 'cls\+depth'"),
        ({"inputs": ["cls_9"]}, "the feature store has no 'cls_9'"),
        ({"inputs": ["cls+views"]}, "there is one view alone"),
        ({"turned": True}, "store has no 'text'"),
    ],
)
def test_mistakes(stores: tuple[Path, Path], tmp_path: Path, options: dict[str, object], message: str) -> None:
    given = stores[::-1] if options.pop("turned", False) else stores
    with pytest.raises(UserError, match=message):
        align.main(*given, tmp_path / "out", seeds=1, **options)  # type: ignore[arg-type]
