"""The comparison of alignments on two stores, as a command and as stages: its tables, its figures and its atlas."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tests.commands.stores import write_store
from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.extensions.alignment.alignment_figures import alignment_curve, heat_map
from vitcapr.extensions.alignment.atlas import rank_correlation, read_atlas
from vitcapr.extensions.alignment.commands import align as command
from vitcapr.extensions.alignment.comparison import largest_study
from vitcapr.extensions.alignment.stages.align import align
from vitcapr.extensions.alignment.stages.draw_alignment import draw_alignment
from vitcapr.extensions.alignment.stages.draw_atlas import draw_atlas
from vitcapr.formats.scores import Score, write_metrics
from vitcapr.pipeline.run import run_stage
from vitcapr.store.reader import open_features

NAMES = [f"i{number:03}" for number in range(200)]
SPLITS = ["train"] * 120 + ["validation"] * 30 + ["test"] * 40 + ["none"] * 10
KINDS = ("scores", "differences", "intervals", "similarity", "seconds")
WIDTH = 8


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set with two captions an image, and its sealed stores.

    A text is a turned copy of its image with some noise; half of what it tells is in the patches alone. The words of a
    caption are the signs of the dimensions of CLS.
    """
    root, draw = tmp_path_factory.mktemp("data_set"), np.random.default_rng(0)
    cause = draw.normal(size=(200, 2 * WIDTH))
    cls = cause[:, :WIDTH].astype(np.float32)
    patches = (cause[:, None, WIDTH:] + draw.normal(size=(200, 4, WIDTH))).astype(np.float32)
    texts = np.repeat(cause @ draw.normal(size=(2 * WIDTH, 12)), 2, axis=0)
    texts = (texts + 0.05 * draw.normal(size=texts.shape)).astype(np.float32)
    signs = [" ".join(f"dimension{'abcdefgh'[d]}" for d in np.flatnonzero(row > 0)) or "none" for row in cls]
    captions = [(name, "en", words) for name, words in zip(NAMES, signs, strict=True) for _ in range(2)]
    write_data_set(root / "data", dict(zip(NAMES, SPLITS, strict=True)), captions)
    write_store(root / "images", {"cls": cls, "patches": patches, "cls_6": cls}, NAMES)
    write_store(root / "texts", {"text": texts}, [f"{name}#{n}" for name in NAMES for n in range(2)], "caption_id")
    return root


def run(data: Path, output: Path, **options: object) -> pd.DataFrame:
    """The scores of the command."""
    pairs = data / "data/captions.parquet"
    command.main(data / "images/sealed", data / "texts/sealed", output, **{"pairs": pairs, **options})  # type: ignore[arg-type]
    return pd.read_csv(output / "scores.csv")


def test_captions_of_other_images_stop(data: Path, tmp_path: Path) -> None:
    texts = np.asarray(open_features(data / "texts/sealed")["text"])
    ids = [f"{name}#{n}" for name in NAMES for n in range(2)]
    write_store(tmp_path / "texts", {"text": np.roll(texts, 2, axis=0)}, ids, "caption_id")
    with pytest.raises(UserError, match="they fit shifted by one"):
        command.main(data / "images/sealed", tmp_path / "texts/sealed", tmp_path / "out")


def test_words_tell_what_the_sentence_encoder_lost(data: Path, tmp_path: Path) -> None:
    scores = run(data, tmp_path, inputs=["cls", "cls+words"], families="cca", sizes="60", seeds=1).set_index("system")
    assert scores["rsum"]["cca (cls+words)"] > scores["rsum"]["cca (cls)"]
    page = (tmp_path / "tables.md").read_text()
    assert "Inputs: cls, cls+words. " in page
    assert "The directions of the words are fitted to all training captions." in page
    # Differences are to the linear head, and a curve needs two numbers of pairs.
    assert "| system | runs | I→T R@1 | I→T R@10 | T→I R@1 | T→I R@10 | CPU s |" in page
    assert "Differences" not in page
    assert pd.read_csv(tmp_path / "differences.csv").empty
    assert not (tmp_path / "recall.png").exists()


def test_it_compares_families_inputs_and_sizes(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"inputs": ["cls", "cls+patches"], "families": "linear@cls,cca,procrustes", "sizes": "50,all"}
    scores = run(data, tmp_path, seeds=2, query_bank=True, **given)
    printed = capsys.readouterr().out
    assert "mutual kNN" in printed
    assert "40 test images with 80 captions" in printed
    families = ("linear (cls)", "cca (cls)", "procrustes (cls)", "cca (cls+patches)", "procrustes (cls+patches)")
    assert set(scores["system"]) == {family + bank for family in families for bank in ("", ", query bank")}
    runs = scores.groupby(["system", "pairs"]).size()
    assert [runs[key] for key in (("linear (cls)", 240), ("cca (cls)", 50), ("cca (cls)", 240))] == [2, 2, 1]
    recall = scores[scores["pairs"] == 240].groupby("system")["t2i_recall_1"].mean()
    assert recall["cca (cls+patches)"] > recall["cca (cls)"]
    differences = pd.read_csv(tmp_path / "differences.csv")
    assert "linear (cls)" not in set(differences["system"])
    one = differences[(differences["system"] == "cca (cls+patches)") & (differences["pairs"] == 240)]
    expected = recall["cca (cls+patches)"] - recall["linear (cls)"]
    assert one.set_index("score")["difference"]["t2i_recall_1"] == pytest.approx(expected)
    assert (differences["low"] <= differences["difference"]).all()
    assert "### 240 pairs" in (tmp_path / "tables.md").read_text()
    assert (tmp_path / "recall.png").stat().st_size > 1000


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
        ({"texts": "images/sealed"}, "store has no 'text'"),
    ],
)
def test_mistakes(data: Path, tmp_path: Path, options: dict[str, object], message: str) -> None:
    texts = data / str(options.pop("texts", "texts/sealed"))
    with pytest.raises(UserError, match=message):
        command.main(data / "images/sealed", texts, tmp_path, seeds=1, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made(data: Path) -> dict[str, Path]:
    """The files of the stage."""
    made = {name: data / f"stage/{name}.csv" for name in (*KINDS, "table", "page")}
    settings = {"image": "vit", "text": "bert", "families": ["linear", "cca"], "sizes": [None], "seeds": 1}
    run_stage(
        align,
        log=data / "stage/log.txt",
        features=data / "images/sealed/manifest.json",
        text_features=data / "texts/sealed/manifest.json",
        manifest=data / "data/manifest.json",
        language="en",
        name="few",
        settings={"alignment": settings},
        **made | {"table": [data / "stage/tables.md"]},
    )
    return made


def test_the_stage_writes_what_the_command_writes(data: Path, made: dict[str, Path], tmp_path: Path) -> None:
    assert set(run(data, tmp_path, families="linear,cca", sizes="all", seeds=1)["pairs"]) == {240}
    for name in KINDS[:-1]:
        assert made[name].read_bytes() == (tmp_path / f"{name}.csv").read_bytes()
    assert (pd.read_csv(made["seconds"])["cpu_seconds"] > 0).all()
    assert "### 240 pairs" in (data / "stage/tables.md").read_text()
    picture = tmp_path / "recall.svg"
    run_stage(draw_alignment, log=tmp_path / "log.txt", scores=made["scores"], pictures=[picture])
    assert picture.stat().st_size > 1000


def test_the_atlas_shows_what_the_alignments_measured(made: dict[str, Path], tmp_path: Path) -> None:
    cider: Score = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 20}
    write_metrics(tmp_path / "metrics.json", "made", "test", {"cider": cider}, "ours")
    kinds, pictures = KINDS[2:], [tmp_path / "atlas.svg"]
    run_stage(
        draw_atlas,
        log=tmp_path / "log.txt",
        **{kind: dict.fromkeys(("vit/bert", "vit/glove"), made[kind]) for kind in kinds},
        metrics={"vit/cls": tmp_path / "metrics.json"},
        pictures=pictures,
        table=[tmp_path / "atlas.md", tmp_path / "atlas.html"],
        numbers=tmp_path / "atlas.csv",
    )
    atlas = pd.read_csv(tmp_path / "atlas.csv")
    assert atlas[["text", "family"]].apply(tuple, axis=1).tolist() == list(
        product(("bert", "glove"), ("linear", "cca"))
    )
    scores = pd.read_csv(made["scores"]).set_index("system")
    for one in atlas.to_dict("records"):
        for score in ("i2t_recall_1", "t2i_recall_1"):
            assert one[score] == pytest.approx(scores.loc[one["family"], score])
            assert one[f"{score}_low"] <= one[score] <= one[f"{score}_high"]
    assert (atlas["calibrated"] == pd.read_csv(made["similarity"])["calibrated"].item()).all()
    assert "| vit | cls | 50.0 (40.0-60.0) |" in (tmp_path / "atlas.md").read_text()
    assert '<img src="atlas.svg" alt="Every input; a shade' in (tmp_path / "atlas.html").read_text()
    assert pictures[0].stat().st_size > 1000
    broken = tmp_path / "similarity.csv"
    broken.write_text("inputs\ncls\n")
    with pytest.raises(UserError, match=r"not the tables of an alignment: .*calibrated"):
        read_atlas(*({"vit/bert": path} for path in (made["intervals"], broken, made["seconds"])))


def test_the_atlas_has_a_panel_for_each_text_encoder() -> None:
    recalls = {
        f"{score}_recall_1{end}": [0.1, 0.2, 0.3, 0.4] for score in ("i2t", "t2i") for end in ("", "_low", "_high")
    }
    names = {"image": "vit", "inputs": ["cls", "patches"] * 2, "text": ["bert"] * 2 + ["glove"] * 2, "family": "cca"}
    atlas = pd.DataFrame({**names, "calibrated": [0.5, 0.25] * 2, **recalls})
    captioners = pd.DataFrame({"image": ["vit"], "inputs": ["patches"], "cider": [0.61]})
    bert, glove, captioner = heat_map(atlas, captioners).axes
    assert [label.get_text() for label in bert.get_yticklabels()] == ["cls", "patches"]
    assert [text.get_text() for text in bert.texts] == ["0.500", "10.0", "10.0", "0.250", "20.0", "20.0"]
    assert [text.get_text() for text in glove.texts] == ["0.500", "30.0", "30.0", "0.250", "40.0", "40.0"]
    assert [text.get_text() for text in captioner.texts] == ["61.0"]
    assert len(heat_map(atlas, captioners.assign(inputs="patches_3")).axes) == 2


def test_a_rank_correlation_is_that_of_scipy() -> None:
    draw = np.random.default_rng(0)
    x, y = draw.integers(0, 6, (2, 12)).astype(float)
    cell = rank_correlation(x, y)
    assert cell.text == f"{spearmanr(x, y).statistic:.2f}"
    assert float(cell.low) < float(cell.text) < float(cell.high)
    assert rank_correlation(x, np.exp(x)).shown == "1.00 (1.00-1.00)"
    assert rank_correlation(x[:4], y[:4]).shown == "-"


def test_the_figure_has_a_line_for_each_system() -> None:
    rows = [("linear", 10, 0.1, 0.3), ("linear", 10, 0.3, 0.3), ("cca", 10, 0.5, 0.4), ("cca", 20, 0.6, 0.4)]
    scores = pd.DataFrame(rows, columns=["system", "pairs", "i2t_recall_1", "t2i_recall_1"])
    left, right = alignment_curve(scores.assign(images=20, captions=100)).axes
    assert [line.get_ydata().tolist() for line in left.lines] == [[pytest.approx(20)], pytest.approx([50, 60])]
    assert right.get_title(loc="left") == "text to image: 100 captions among 20 images"


def test_the_recalls_of_the_most_pairs() -> None:
    fits = [("linear", 100, 0, 0.1), ("linear", 300, 0, 0.2), ("linear", 300, 1, 0.4), ("mlp", 300, 0, 0.5)]
    rows = [(*fit, fit[-1] / 2) for fit in fits]
    columns = ["system", "pairs", "seed", "i2t_recall_1", "t2i_recall_1"]
    table = largest_study("few", pd.DataFrame(rows, columns=columns))
    assert table.title == "Alignment few: 300 pairs, mean over 2 seeds"
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["linear", "30.00", "15.00"],
        ["mlp", "50.00", "25.00"],
    ]
