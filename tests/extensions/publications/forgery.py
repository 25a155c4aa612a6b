"""A forger of publications, who mends every digest that stands anywhere."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.torch import load_file, save_file

from tests.extensions.publications.conftest import quiet
from vitcapr.files import sha256_file
from vitcapr.formats.containers import read_parquet, write_frame
from vitcapr.formats.manifest import SCHEMAS
from vitcapr.pipeline.stage import find_stage


def change_json(path: Path, change: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def change_table(path: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    write_frame(path, [change(read_parquet(path).to_pandas())], SCHEMAS[path.name])


def change_arrays(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    with np.load(path) as content:
        arrays = dict(content)
    change(arrays)
    np.savez(path, **arrays)


def change_rows(path: Path, change: Callable[[Any], object]) -> None:
    rows = np.load(path)
    change(rows)
    np.save(path, rows)


def change_weights(path: Path, change: Callable[[Any], object]) -> None:
    weights = load_file(path)
    change(weights)
    save_file(weights, path)
    change_json(path.with_name("card.json"), lambda card: card.update(weights_sha256=sha256_file(path)))


def score_again(experiment: Path, decoding: str) -> None:
    """Score forged captions, as an honest job would."""
    folder, stage = experiment / "metrics/a" / decoding / "test", find_stage("score")
    run = json.loads((experiment / f"runs/score/a.{decoding}.test.json").read_text(encoding="utf-8"))
    job = {"captions": experiment / f"captions/a/{decoding}/test/captions.json", "model": "a", "decoding": decoding}
    job |= {"manifest": experiment / "data/manifest.json", "vocabulary": experiment / "text/vocabulary.json"}
    job |= {"metrics": folder / "metrics.json", "per_image": folder / "per_image.parquet"}
    stage(**stage.read({**job, "split": "test", "settings": run["settings"]}), report=quiet())


def print_again(experiment: Path) -> None:
    """Write the summary and the tables of forged metrics."""
    names = ("a/greedy", "a/beam", "retrieval/r")
    job = {"metrics": [experiment / f"metrics/{name}/test/metrics.json" for name in names], "experiment": "tiny"}
    job |= {"summary": experiment / "summary.csv", "table": [experiment / f"tables/scores.{s}" for s in ("md", "html")]}
    stage = find_stage("summary")
    stage(**stage.read(job), report=quiet())


def mend(publication: Path) -> None:
    """Put the digests of the forged files into the data set's manifest, the run records and ``publication.json``."""
    experiment = publication / "experiment"
    manifest = experiment / "data/manifest.json"

    def seal(content: Any) -> None:
        content["files"] = {name: sha256_file(manifest.parent / name) for name in content["files"]}

    change_json(manifest, seal)
    own = {path.relative_to(experiment).as_posix(): sha256_file(path) for path in experiment.rglob("*.*")}

    def record(run: Any) -> None:
        for facts in (run["inputs"], run["outputs"]):
            for path in facts:
                if (place := path.removeprefix("results/tiny/")) in own:
                    facts[path]["sha256"] = own[place]

    for path in experiment.glob("runs/**/*.json"):
        change_json(path, record)

    def index(listed: Any) -> None:
        for name, facts in listed["files"].items():
            facts |= {"sha256": sha256_file(publication / name), "size": (publication / name).stat().st_size}

    change_json(publication / "publication.json", index)
