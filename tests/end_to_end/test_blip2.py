"""experiments/blip2-flickr30k.yaml from the Parquet file to the tables, on a tiny BLIP-2 and 30 training pairs."""

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.encoders.two_towers import WORDS, blip2_t5
from tests.end_to_end.conftest import copy_checkout

SPLITS = {"train": 40, "val": 12, "test": 12}
EACH = 5
ROW = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def write_release(folder: Path) -> None:
    """The columns of lmms-lab/flickr30k and the list of the official splits; every picture has its own colours."""
    draw = np.random.default_rng(0)
    names = [f"{1000 + number}.jpg" for number in range(sum(SPLITS.values()))]
    captions = [[" ".join(draw.choice(WORDS[:-1], 6)) for _ in range(EACH)] for _ in names]
    pictures = []
    for _ in names:
        stream = io.BytesIO()
        Image.fromarray(draw.integers(0, 256, (20, 24, 3), dtype=np.uint8)).save(stream, "JPEG")
        pictures.append(stream.getvalue())
    columns = {
        "image": pa.array([{"bytes": one, "path": name} for one, name in zip(pictures, names, strict=True)], ROW),
        "caption": captions,
        "sentids": [[str(EACH * row + number) for number in range(EACH)] for row in range(len(names))],
        "img_id": [str(row) for row in range(len(names))],
        "filename": names,
    }
    folder.mkdir(parents=True)
    pq.write_table(pa.table(columns), folder / "test-00000-of-00009.parquet")
    of_image = [split for split, count in SPLITS.items() for _ in range(count)]
    listed = [
        {"filename": name, "split": split, "sentences": [{"raw": text, "sentid": 0} for text in texts]}
        for name, split, texts in zip(names, of_image, captions, strict=True)
    ]
    (folder / "dataset_flickr30k.json").write_text(json.dumps({"images": listed, "dataset": "flickr30k"}))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_whole_experiment(
    tmp_path: Path, snakemake: Callable[..., subprocess.CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_checkout(tmp_path)
    blip2_t5(tmp_path / "backbones" / "Salesforce" / "blip2-flan-t5-xl")
    write_release(tmp_path / "data" / "flickr30k")
    monkeypatch.setenv("VITCAPR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("VITCAPR_BACKBONES", str(tmp_path / "backbones"))
    fewer = "{training: {pairs: 30}}"
    done = snakemake(
        tmp_path, "--config", f"retrievers={{linear: {fewer}, mlp: {fewer}}}", experiment="experiments/blip2-flickr30k"
    )
    assert done.returncode == 0, done.stdout
    root = tmp_path / "results" / "blip2-flickr30k"
    with (root / "summary.csv").open(newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["metric"] == "t2i_recall_10"]
    assert [row["model"] for row in rows] == ["raw", "linear", "mlp"]
    assert {(row["split"], row["n"]) for row in rows} == {("test", "12")}
    assert all("12" in row["protocol"] for row in rows)
    with (root / "retrievers" / "mlp" / "sweep.csv").open(newline="") as stream:
        assert [float(row["learning_rate"]) for row in csv.DictReader(stream)] == [0.0003, 0.001, 0.003]
    page = (root / "tables" / "blip2-flickr30k" / "blip2-flickr30k.md").read_text()
    for printed in ("20.67", "25.27", "58.26", "retriever raw", "retriever linear", "retriever mlp"):
        assert printed in page
    for figure in ("recall", "side_by_side/en/test/spaces", "side_by_side/en/test/top_captions"):
        assert list((root / "figures").glob(f"{figure}*")), figure
