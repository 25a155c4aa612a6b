"""The comparison of alignments as stages: from two stores and a manifest to its tables and its figure."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tests.commands.stores import write_store
from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.formats.scores import Score, write_metrics
from vitcapr.pipeline.run import run_stage
from vitcapr.studies.alignment.atlas import rank_correlation, read_atlas
from vitcapr.studies.alignment.commands import align as command
from vitcapr.studies.alignment.comparison import largest_study
from vitcapr.studies.alignment.figures import alignment_curve, heat_map
from vitcapr.studies.alignment.stages.align import align
from vitcapr.studies.alignment.stages.draw_alignment import draw_alignment
from vitcapr.studies.alignment.stages.draw_atlas import draw_atlas

NAMES = [f"i{number:03}" for number in range(100)]
SPLITS = ["train"] * 60 + ["validation"] * 20 + ["test"] * 20
OUTPUTS = ("scores", "differences", "intervals", "similarity", "seconds", "table", "page")
WANTED = {"image": "vit", "text": "bert", "families": ["linear", "cca"], "sizes": [None], "seeds": 1}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images and captions of a data set, two captions an image, and their sealed stores."""
    root = tmp_path_factory.mktemp("data_set")
    names = [f"{name}#{number}" for name in NAMES for number in range(2)]
    captions = [(name, "en", "a word") for name in NAMES for _ in range(2)]
    write_data_set(root / "data", dict(zip(NAMES, SPLITS, strict=True)), captions)
    draw = np.random.default_rng(0)
    cls = draw.normal(size=(100, 6))
    texts = np.repeat(cls, 2, axis=0) @ draw.normal(size=(6, 8)) + 0.3 * draw.normal(size=(200, 8))
    write_store(root / "images", {"cls": cls.astype(np.float32)}, NAMES, "image_id")
    write_store(root / "texts", {"text": texts.astype(np.float32)}, names, "caption_id")
    return root


@pytest.fixture(scope="module")
def made(data: Path) -> dict[str, Path]:
    """The files of the stage."""
    folder = data / "stage"
    made = {name: folder / f"{name}.{'md' if name == 'table' else 'csv'}" for name in OUTPUTS}
    run_stage(
        align,
        log=folder / "log.txt",
        features=data / "images/sealed/manifest.json",
        text_features=data / "texts/sealed/manifest.json",
        manifest=data / "data/manifest.json",
        language="en",
        name="few",
        settings={"alignment": WANTED},
        **made | {"table": [made["table"]]},
    )
    return made


def test_the_stage_finds_what_the_command_finds(data: Path, made: dict[str, Path], tmp_path: Path) -> None:
    stores = (data / "images/sealed", data / "texts/sealed")
    of_command = {"pairs": data / "data/captions.parquet", "families": "linear,cca", "sizes": "all", "seeds": 1}
    command.main(*stores, tmp_path / "out", **of_command)  # type: ignore[arg-type]
    for name in ("scores", "differences", "intervals", "similarity"):
        assert made[name].read_bytes() == (tmp_path / f"out/{name}.csv").read_bytes()
    assert set(pd.read_csv(made["scores"])["pairs"]) == {120}
    assert (pd.read_csv(made["seconds"])["cpu_seconds"] > 0).all()
    assert "### 120 pairs" in made["table"].read_text()

    picture = tmp_path / "recall.svg"
    run_stage(draw_alignment, log=tmp_path / "log.txt", scores=made["scores"], pictures=[picture])
    assert picture.stat().st_size > 1000


def test_the_atlas_shows_what_the_alignments_measured(made: dict[str, Path], tmp_path: Path) -> None:
    cider: Score = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 20}
    write_metrics(tmp_path / "metrics.json", "made", "test", {"cider": cider}, "ours")
    kinds = ("intervals", "similarity", "seconds")
    pictures = [tmp_path / "atlas.svg", tmp_path / "similarity.svg"]
    run_stage(
        draw_atlas,
        log=tmp_path / "log.txt",
        **{kind: dict.fromkeys(("vit/bert", "vit/glove"), made[kind]) for kind in kinds},
        metrics={"vit/cls": tmp_path / "metrics.json"},
        pictures=pictures,
        table=tmp_path / "atlas.md",
        values=tmp_path / "atlas.csv",
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
    assert min(picture.stat().st_size for picture in pictures) > 1000
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


def test_with_one_number_of_pairs_the_figure_has_a_row_for_each_system() -> None:
    rows = [("linear", 10, 0.1, 0.3), ("linear", 10, 0.3, 0.3), ("cca", 10, 0.5, 0.4)]
    scores = pd.DataFrame(rows, columns=["system", "pairs", "i2t_recall_1", "t2i_recall_1"])
    left, right = alignment_curve(scores.assign(images=20, captions=100)).axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["linear", "cca"]
    for axes, means in ((left, [20, 50]), (right, [30, 40])):
        assert axes.containers[0].lines[0].get_xdata().tolist() == pytest.approx(means)
    assert right.get_title(loc="left") == "text to image:\n100 captions among 20 images"


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
