"""The comparison of alignments as stages: from two stores and a manifest to its tables and its figure."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.commands.stores import write_store
from tests.data_sets import write_data_set
from vitcapr.commands import align as command
from vitcapr.pipeline.run import run_stage
from vitcapr.report.figures.learning_curve import alignment_curve
from vitcapr.stages.align import align
from vitcapr.stages.draw_alignment import draw_alignment

NAMES = [f"i{number:03}" for number in range(100)]
SPLITS = ["train"] * 60 + ["validation"] * 20 + ["test"] * 20
OUTPUTS = ("scores", "differences", "seconds", "table")
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


def run(data: Path, folder: Path) -> dict[str, Path]:
    made = {name: folder / f"{name}.{'md' if name == 'table' else 'csv'}" for name in OUTPUTS}
    run_stage(
        align,
        log=folder / "log.txt",
        features=data / "images/sealed/manifest.json",
        text_features=data / "texts/sealed/manifest.json",
        manifest=data / "data/manifest.json",
        language="en",
        settings=json.dumps({"alignment": WANTED}),
        **made,
    )
    return made


def test_the_stage_finds_what_the_command_finds(data: Path, tmp_path: Path) -> None:
    made = run(data, tmp_path / "stage")
    stores = (data / "images/sealed", data / "texts/sealed")
    of_command = {"pairs": data / "data/captions.parquet", "families": "linear,cca", "sizes": "all", "seeds": 1}
    command.main(*stores, tmp_path / "out", **of_command)  # type: ignore[arg-type]
    for name in ("scores", "differences"):
        assert made[name].read_bytes() == (tmp_path / f"out/{name}.csv").read_bytes()
    assert set(pd.read_csv(made["scores"])["pairs"]) == {120}
    assert (pd.read_csv(made["seconds"])["cpu_seconds"] > 0).all()
    assert "### 120 pairs" in made["table"].read_text()

    picture = tmp_path / "recall.svg"
    run_stage(draw_alignment, log=tmp_path / "log.txt", scores=made["scores"], pictures=[picture])
    assert picture.stat().st_size > 1000


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
