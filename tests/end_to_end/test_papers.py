"""The papers' experiment files run whole and as they are written, on a few pictures and small random checkpoints."""

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.checkouts import copy_checkout
from tests.commands.stores import write_store
from tests.docs.blocks import REPOSITORY, blocks_of
from tests.end_to_end import paper_inputs
from tests.extensions.papers.maps import WITHOUT_GPU, drawn
from vitcapr.formats.manifest import read_manifest


@dataclass(frozen=True)
class Paper:
    """A paper's file.

    Attributes:
        inputs: writes the data and the checkpoints that it reads.
        page: the paper, whose map names the files to expect.
        shown: numbers of the paper and systems of this build that its page of tables has to show.
        fewer: settings that count pairs or images, made smaller.
        files: more files to expect below the experiment's folder.
        without: parts of the map that the experiment does not make.
    """

    inputs: Callable[[Path, Path], None]
    page: str
    shown: tuple[str, ...]
    fewer: str = ""
    files: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


PAPERS = {
    "vitcap-r-flickr8k": Paper(
        paper_inputs.flickr8k,
        "vitcap-r",
        ("51.24", "31.03", "patch_attention/reranked"),
        files=("captioners/patch_attention/gpu.csv",),
    ),
    "vitcap-r-coco": Paper(
        paper_inputs.coco,
        "vitcap-r",
        ("patch_attention/reranked", "retriever paper_hard_negatives"),
        without=("figures 7 and 8", "figures 9 and 10"),
    ),
    "blip2-flickr30k": Paper(
        paper_inputs.flickr30k,
        "blip2-flickr30k",
        ("20.67", "25.27", "58.26", "retriever raw", "retriever linear", "retriever mlp"),
        "retrievers={linear: {training: {pairs: 30}}, mlp: {training: {pairs: 30}}}",
    ),
    "blip2-flickr30k-whole": Paper(
        paper_inputs.flickr30k,
        "blip2-flickr30k",
        ("20.67", "retriever raw", "pool:64images,64captions"),
        without=("figure 3", "figure 4", "tables 5 and 6"),
    ),
    "blip2-flickr30k-beyond": Paper(
        paper_inputs.flickr30k,
        "blip2-flickr30k",
        ("20.67", "mlp_all_hard_negatives"),
        files=("tables/ablations.md",),
    ),
    "bert-vit": Paper(
        paper_inputs.pairs,
        "bert-vit",
        ("86.70", "retriever devise"),
        "data={pairs: {test_images: 6, pairs: 72}}",
        files=("metrics/retrieval/fine_tuned/pools/metrics.json",),
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", PAPERS)
def test_the_whole_experiment(
    name: str,
    tmp_path: Path,
    snakemake: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    paper = PAPERS[name]
    copy_checkout(tmp_path, "experiments")
    paper.inputs(tmp_path / "data", tmp_path / "backbones")
    monkeypatch.setenv("VITCAPR_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("VITCAPR_BACKBONES", str(tmp_path / "backbones"))
    fewer = ("--config", paper.fewer) if paper.fewer else ()
    done = snakemake(tmp_path, *fewer, experiment=f"experiments/{name}")
    assert done.returncode == 0, done.stdout
    check_results(paper, tmp_path / "results" / name)


def check_results(paper: Paper, root: Path) -> None:
    missing = {part.name for part in drawn(paper.page) if not part.is_in(root)}
    assert missing == {*paper.without, *(WITHOUT_GPU if paper.page == "vitcap-r" else ())}
    assert [file for file in paper.files if not (root / file).exists()] == []
    (page,) = (path for path in root.glob("tables/*/*.md") if path.stem == path.parent.name)
    assert [text for text in paper.shown if text not in page.read_text(encoding="utf-8")] == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_blip2_runs_from_two_stores_without_a_checkpoint(
    tmp_path: Path, snakemake: Callable[..., subprocess.CompletedProcess[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The experiment's file, with the sections of its page in place of its own."""
    name, paper = "blip2-flickr30k", PAPERS["blip2-flickr30k"]
    copy_checkout(tmp_path, "experiments")
    paper.inputs(tmp_path / "data", tmp_path / "backbones")
    shutil.rmtree(tmp_path / "backbones")
    monkeypatch.setenv("VITCAPR_DATA", str(tmp_path / "data"))
    done = snakemake(tmp_path, "--", f"results/{name}/data/manifest.json", experiment=f"experiments/{name}")
    assert done.returncode == 0, done.stdout
    data, draw = read_manifest(tmp_path / f"results/{name}/data/manifest.json"), np.random.default_rng(0)
    for store, array, identity, width in (("images", "cls", "image_id", 16), ("captions", "text", "caption_id", 8)):
        ids = (data.images if array == "cls" else data.captions)[identity].tolist()
        vectors = draw.normal(size=(len(ids), width)).astype(np.float32)
        sealed = f"stores/blip2-{store}/manifest.json"
        made: dict[str, Any] = {"backbone": "blip2", "revision": None, "weights_sha256": None, "dtype": "unknown"}
        write_store(tmp_path, {array: vectors}, ids, identity, sealed=sealed, store_dtype="float32", **made)
    page = REPOSITORY / "docs" / f"{name}.md"
    (shown,) = (block.text for block in blocks_of(page) if "store:" in block.text)
    experiment = yaml.safe_load((tmp_path / f"experiments/{name}.yaml").read_text()) | yaml.safe_load(shown)
    (tmp_path / "from-stores.yaml").write_text(yaml.safe_dump(experiment))
    done = snakemake(tmp_path, "--config", paper.fewer, experiment="from-stores")
    assert done.returncode == 0, done.stdout
    assert "extract" not in done.stdout
    check_results(paper, tmp_path / "results" / name)
