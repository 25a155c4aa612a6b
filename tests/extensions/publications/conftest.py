"""A tiny experiment, whose jobs run in this process and leave their records, and its publication."""

import io
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from tests.commands.stores import write_store
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.experiment.experiment import read_config
from vitcapr.extensions.publications.publishing import Plan, publish
from vitcapr.files import sha256_bytes
from vitcapr.formats.manifest import Manifest, read_manifest
from vitcapr.pipeline.run import run_stage
from vitcapr.pipeline.stage import find_stage
from vitcapr.progress import Reporter
from vitcapr.store.writer import fingerprint_of

ONE_PHASE = {"epochs": 4, "batch_images": 16, "learning_rate": 0.02, "schedule": "constant", "warmup_steps": 0}
CONFIG: dict[str, Any] = {
    "experiment": "tiny",
    "data": {"dataset": "scenes", "scenes": {"images": 60, "size": 32, "validation": 0.1, "test": 0.2}},
    "text": {"language": "zh", "vocabulary": {"min_count": 1}},
    "backbones": {"vit": {"source": "trained"}},
    "captioners": {
        "a": {"backbone": "vit", "embedding_dim": 8, "hidden_dim": 16, "attention_dim": 16}
        | {"training": {"phases": ONE_PHASE, "ema_decay": 0.0, "precision": "float32"}}
    },
    "decodings": {"greedy": {"max_length": 6}, "beam": {"beam_size": 3, "n_best": 2, "max_length": 6}},
    "retrievers": {
        "r": {"backbone": "vit", "embedding_dim": 8, "image": {"pool": "cls"}, "text": {"kind": "bag"}}
        | {"training": {"phases": {**ONE_PHASE, "epochs": 1}}}
    },
    "metrics": {"caption": ["bleu", "cider", "diversity"], "bootstrap_samples": 50},
    "run": {"captioners": ["a"], "decodings": ["greedy", "beam"], "retrievers": ["r"]},
}
ROOT = "results/tiny"
DATA, VIT, WORDS = f"{ROOT}/data/manifest.json", f"{ROOT}/features/vit/manifest.json", f"{ROOT}/text/vocabulary.json"
MODEL_INPUTS = {"features": VIT, "manifest": DATA, "vocabulary": WORDS}


def run_job(config: ExperimentConfig, stage: str, name: str, names: dict[str, str], **job: Any) -> None:
    declared = find_stage(stage)
    if declared.settings:
        job["settings"] = declared.settings.from_config(config, SimpleNamespace(**names)).canonical()
    run_stage(declared, log=Path(f"{ROOT}/logs/{name}.log"), **job)


def write_features(data: Manifest) -> None:
    """A sealed store whose features tell the images apart."""
    draw, rows = np.random.default_rng(0), data.images["image_id"].str[-4:].astype(int)
    shapes = {"cls": (60, 12), "patches": (60, 4, 12)}
    arrays = {name: draw.normal(size=shape).astype(np.float16)[rows] for name, shape in shapes.items()}
    recipe = {"backbone": "trained", "revision": None, "weights_sha256": sha256_bytes(b"vit"), "grid": [2, 2]}
    recipe |= {"images_sha256": data.image_contents, "terms": {}}
    recipe["fingerprint"] = fingerprint_of(recipe)
    sealed = VIT.removeprefix("results/")
    write_store(Path("results"), arrays, data.images["image_id"].tolist(), chunk=8, sealed=sealed, **recipe)


def run_all(config: ExperimentConfig) -> None:
    run_job(config, "data_scenes", "data", {}, folder=f"{ROOT}/data")
    write_features(read_manifest(DATA))
    run_job(config, "vocabulary", "vocabulary", {}, manifest=DATA, vocabulary=WORDS, tokens=f"{ROOT}/text/tokens.npz")
    training = {**MODEL_INPUTS, "tokens": f"{ROOT}/text/tokens.npz", "device": "cpu"}
    for kind, name in (("captioner", "a"), ("retriever", "r")):
        folder = {kind: f"{ROOT}/{kind}s/{name}"}
        run_job(config, f"train_{kind}", f"train_{kind}/{name}", {kind: name}, **training, **folder)
    scores = []
    for decoding in ("greedy", "beam"):
        names = {"captioner": "a", "decoding": decoding, "split": "test"}
        captions = f"{ROOT}/captions/a/{decoding}/test/captions.json"
        folder = f"{ROOT}/metrics/a/{decoding}/test"
        files = {"captioner": f"{ROOT}/captioners/a", "captions": captions, "split": "test", "device": "cpu"}
        run_job(config, "decode", f"decode/a.{decoding}.test", names, **MODEL_INPUTS, **files)
        files = {"captions": captions, "manifest": DATA, "vocabulary": WORDS, "split": "test", "model": "a"}
        files |= {"metrics": f"{folder}/metrics.json", "per_image": f"{folder}/per_image.parquet", "decoding": decoding}
        run_job(config, "score", f"score/a.{decoding}.test", names, **files)
        scores.append(f"{folder}/metrics.json")
    embeddings = f"{ROOT}/embeddings/r/test/embeddings.npz"
    files = {"retriever": f"{ROOT}/retrievers/r", "embeddings": embeddings, "split": "test", "device": "cpu"}
    run_job(config, "embed", "embed/r.test", {}, **MODEL_INPUTS, **files)
    folder = f"{ROOT}/metrics/retrieval/r/test"
    files = {"embeddings": embeddings, "manifest": DATA, "split": "test", "model": "r"}
    files |= {"metrics": f"{folder}/metrics.json", "ranks": f"{folder}/ranks.npz"}
    run_job(config, "score_retrieval", "score_retrieval/r.test", {}, **files)
    table = [f"{ROOT}/tables/scores.md", f"{ROOT}/tables/scores.html"]
    scores.append(f"{folder}/metrics.json")
    summary = {"summary": f"{ROOT}/summary.csv", "table": table, "metrics": scores, "experiment": "tiny"}
    run_job(config, "summary", "summary", {}, **summary)


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study with all results of ``tiny``."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "config.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    before = Path.cwd()
    os.chdir(folder)
    try:
        run_all(read_config(Path("config.yaml")))
    finally:
        os.chdir(before)
    return folder


@pytest.fixture(scope="session")
def publication(study: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The publication of ``tiny``: not to be changed."""
    target = tmp_path_factory.mktemp("published") / "tiny"
    config = read_config(study / "config.yaml")
    before = Path.cwd()
    os.chdir(study)
    try:
        publish(Plan(Path(ROOT)), str(target), config, quiet(), tmp_path_factory.mktemp("scratch"))
    finally:
        os.chdir(before)
    return target


def quiet() -> Reporter:
    return Reporter(stream=io.StringIO())


@pytest.fixture(autouse=True)
def _no_threads_left() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
