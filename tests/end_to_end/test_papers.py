"""The papers' experiment files run whole and as they are written, on a few pictures and small random checkpoints."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.checkouts import copy_checkout
from tests.end_to_end import paper_inputs


@dataclass(frozen=True)
class Paper:
    """A paper's file.

    Attributes:
        inputs: writes the data and the checkpoints that it reads.
        parts: what the paper prints, and the files that stand for it below the experiment's folder.
        shown: numbers of the paper and systems of this build that its page of tables has to show.
        fewer: settings that count pairs or images, made smaller.
    """

    inputs: Callable[[Path, Path], None]
    parts: dict[str, str]
    shown: tuple[str, ...]
    fewer: str = ""


BLIP2 = {
    f"table {number}": f"tables/blip2-flickr30k/{name}.md"
    for number, name in enumerate(("literature_retrieval", "retrieval_flickr30k", "full_training", "heads"), 1)
}
PAPERS = {
    "vitcap-r-flickr8k": Paper(
        paper_inputs.flickr8k,
        {
            "figure 3": "figures/curves/retrievers.png",
            "figure 4": "captioners/patch_attention/gpu.csv",
            "figures 5 and 6": "figures/captions/validation/captions.png",
            "figures 7 and 8": "figures/attention/patch_attention/greedy/validation/attention-*.png",
            "figures 9 and 10": "figures/attention/patch_attention/beam/validation/attention-*.png",
            "figure 17": "figures/embeddings/paper/validation/pca.png",
            "section IV-B": "tables/vitcap-r/captioning_flickr8k.md",
            "retrieval": "tables/vitcap-r/retrieval_flickr8k.md",
        },
        ("51.24", "31.03", "patch_attention/reranked"),
    ),
    "vitcap-r-coco": Paper(
        paper_inputs.coco,
        {
            "figures 11 and 12": "figures/captions/validation/captions.png",
            "figures 13 and 14": "figures/reranked/patch_attention/reranked/validation/reranked.png",
            "figure 15": "figures/retrieved/paper_hard_negatives/validation/image_to_text.png",
            "figure 16": "figures/retrieved/paper_hard_negatives/validation/text_to_image.png",
            "figure 18": "figures/embeddings/paper_hard_negatives/validation/tsne.png",
            "figure 19": "figures/embeddings/paper_hard_negatives/validation/cosines.png",
            "section IV-B": "tables/vitcap-r/hard_negatives.md",
        },
        ("patch_attention/reranked", "retriever paper_hard_negatives"),
    ),
    "blip2-flickr30k": Paper(
        paper_inputs.flickr30k,
        {
            **BLIP2,
            "figure 2": "figures/recall/test/recall.png",
            "figure 3": "figures/side_by_side/en/test/spaces.png",
            "tables 5 and 6": "figures/side_by_side/en/test/top_captions.png",
        },
        ("20.67", "25.27", "58.26", "retriever raw", "retriever linear", "retriever mlp"),
        "retrievers={linear: {training: {pairs: 30}}, mlp: {training: {pairs: 30}}}",
    ),
    "blip2-flickr30k-whole": Paper(
        paper_inputs.flickr30k, {"table 2": BLIP2["table 2"]}, ("20.67", "retriever raw", "pool:64images,64captions")
    ),
    "blip2-flickr30k-beyond": Paper(
        paper_inputs.flickr30k,
        {"ablation": "tables/ablations.md", "table 2": BLIP2["table 2"]},
        ("20.67", "mlp_all_hard_negatives"),
    ),
    "bert-vit": Paper(
        paper_inputs.pairs,
        {
            "figure 8": "figures/pairs/lengths.png",
            "figure 10": "figures/pixels/*/*.png",
            "figure 11": "figures/loss_curves/learning_rates.png",
            "figure 12": "figures/loss_curves/optimizers.png",
            "table 5": "tables/bert-vit/retrieval_pairs.md",
            "section 2.3": "tables/bert-vit/representation.md",
            "gains": "tables/bert-vit/gains.md",
            "tables 6 and 7": "figures/side_by_side/*/pools/top_*.png",
            "pools": "metrics/retrieval/fine_tuned/pools/metrics.json",
        },
        ("86.70", "retriever devise"),
        "data={pairs: {test_images: 6, pairs: 72}}",
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
    root = tmp_path / "results" / name
    missing = {part: pattern for part, pattern in paper.parts.items() if not list(root.glob(pattern))}
    assert missing == {}
    (page,) = (path for path in root.glob("tables/*/*.md") if path.stem == path.parent.name)
    assert [text for text in paper.shown if text not in page.read_text(encoding="utf-8")] == []
