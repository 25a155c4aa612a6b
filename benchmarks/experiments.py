"""Scores of experiments that have run, as tables of ``results.json``.

    python -m benchmarks.experiments TABLE RESULTS...

RESULTS are the folders of an experiment's results, one for each seed. A cell of several seeds is their mean and
standard deviation; one of a single seed has its 95 % interval.

A table names its experiment and the fingerprint of it: of its configuration, and of the code of the stages that make
scores, as far as it counts. tests/test_benchmarks.py fails for a table whose fingerprint is not that of today, unless
its ``note`` says why.
"""

import fnmatch
import subprocess
import sys
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

import pandas as pd

from benchmarks import results
from vitcapr.files import canonical_json, sha256_bytes, sha256_file
from vitcapr.loader import FOLDER
from vitcapr.pipeline.code import counted, job_code

STAGES = (
    *("vocabulary", "train_captioner", "decode", "rerank", "tune_reranking", "score"),
    *("train_retriever", "embed", "score_retrieval"),
)
RECALLS = {
    "image to text R@1": "i2t_recall_1",
    "R@10": "i2t_recall_10",
    "text to image R@1": "t2i_recall_1",
    "R@10 ": "t2i_recall_10",
}
CAPTIONS = {"BLEU-1": "bleu_1", "BLEU-4": "bleu_4", "METEOR": "meteor", "CIDEr": "cider"}
WORDS = {"words used": "vocabulary_used", "shared": "identical_captions"}
"""Metrics that are no shares."""
_SHOW = """
import sys
from pathlib import Path
from vitcapr.experiment.experiment import read_config
print(read_config(Path(sys.argv[1])).model_dump_json())
"""
"""Prints a configuration in full; the parts of an extension are those in the working folder of the process."""
TABLES: dict[str, tuple[str, dict[str, str], dict[str, str]]] = {
    "ideas retrieval": (
        "experiments/ideas/flickr8k.yaml",
        {
            "InfoNCE": "info_nce/",
            "SigLIP": "siglip/",
            "DCL": "dcl/",
            "hard negatives, beta 0.5": "hard_info_nce/",
            "CyCLIP": "cyclip/",
            "Matryoshka": "matryoshka/",
            "distillation": "distillation/",
            "its teacher": "teacher/",
            "mixture of experts": "experts/",
            "frozen MiniLM": "frozen/",
            "MiniLM with LoRA": "lora/",
        },
        RECALLS,
    ),
    "ideas captions": (
        "experiments/ideas/flickr8k.yaml",
        {
            "cross-entropy": "cross_entropy/beam",
            "smoothed towards unigrams": "unigram_smoothing/beam",
            "unlikelihood of repeats": "unlikelihood/beam",
            "memory of the nearest training images": "memory/beam",
            "cross-entropy, reranked by the cosine": "cross_entropy/pooled",
            "cross-entropy, reranked by MaxSim": "cross_entropy/maxsim",
        },
        CAPTIONS,
    ),
    "flickr8k": (
        "experiments/flickr8k-vit-tiny.yaml",
        {"greedy": "patch_attention/greedy", "beam 10, reranked": "patch_attention/reranked"},
        {"BLEU-4": "bleu_4", "METEOR 1.5": "meteor", "CIDEr": "cider", "words used": "vocabulary_used"},
    ),
    "flickr8k captions": (
        "experiments/flickr8k-vit-tiny.yaml",
        {
            "`flickr8k-vit-tiny`, greedy": "patch_attention/greedy",
            "beam 10": "patch_attention/beam",
            "beam 10, reranked (`reranked`)": "patch_attention/reranked",
            "50 samples, reranked (`diverse`)": "patch_attention/diverse",
        },
        CAPTIONS | WORDS,
    ),
    "flickr8k heads": (
        "experiments/projection-flickr8k.yaml",
        {
            "raw": "raw/",
            "linear, 5,000 pairs": "linear-seed?/",
            "mlp, the best of three learning rates, 5,000 pairs": "mlp-seed?/",
            "residual, dropout, mixup, 5,000 pairs": "recommended-seed?/",
            "linear, 30,000 pairs": "linear_all-seed?/",
            "mlp, 30,000 pairs": "mlp_all-seed?/",
            "`recommended_all`, 30,000 pairs": "recommended_all-seed?/",
            "the same with a query bank": "recommended_all-seed?-query_bank/",
        },
        RECALLS,
    ),
    "flickr8k recalls": ("experiments/flickr8k-vit-tiny.yaml", {"the retriever that reranks": "bag/"}, RECALLS),
    "record captions": (
        "experiments/record/flickr8k.yaml",
        {
            "larger captioner, greedy": "large/greedy",
            "beam 10": "large/beam",
            "beam 10, reranked": "large/reranked",
            "another seed: beam 10, reranked": "seed1/reranked",
            "ensemble of both: beam 10": "ensemble/beam",
            "ensemble: beam 10, reranked": "ensemble/reranked",
            "ensemble: 50 samples, reranked, neighbours": "ensemble/neighbours",
        },
        CAPTIONS | WORDS,
    ),
    "record recalls": (
        "experiments/record/flickr8k.yaml",
        {"nine members": "nine/", "nine members with a query bank": "nine-query_bank/"},
        RECALLS,
    ),
}
"""Name -> the experiment; the model and decoding of each row, ``?`` for a seed; the metric of each column."""
PRINTED: dict[str, dict[str, list[float | None]]] = {
    "flickr8k": {
        "ViTCap-R paper, greedy, 100 validation images": [3.8, None, None, None],
        "hard attention (Xu et al. 2015)": [21.3, 20.3, None, None],
    },
    "flickr8k captions": {
        "ViTCap-R paper, baseline, greedy, 100 validation images; its own METEOR": [51.2, 3.8, 15.7, None, None, None],
        "soft attention (Xu et al. 2015)": [67.0, 19.5, 18.9, None, None, None],
        "hard attention (Xu et al. 2015)": [67.0, 21.3, 20.3, None, None, None],
    },
    "flickr8k recalls": {"ViTCap-R paper": [0.07, 1.02, 0.05, 0.80]},
}
"""Rows that a paper prints."""


def fingerprint(experiment: str) -> str:
    """Return a digest of the configuration, of the parts beside it, and of the code of the stages that make scores."""
    path = results.ROOT / experiment
    parts = {file.name: sha256_file(file) for file in sorted(path.parent.glob("*/*.py"))} if _has_parts(path) else {}
    with TemporaryDirectory() as study:
        if parts:
            Path(study, FOLDER).symlink_to(path.parent)
        show = [sys.executable, "-c", _SHOW, str(path)]
        configuration = subprocess.run(show, cwd=study, check=True, capture_output=True, text=True).stdout
    code = {stage: counted(job_code(f"vitcapr.stages.{stage}", {})) for stage in STAGES}
    return sha256_bytes(canonical_json({"configuration": configuration, "parts": parts, "code": code}).encode())[:16]


def _has_parts(experiment: Path) -> bool:
    return experiment.parent.name != "experiments"


def rows(systems: dict[str, str], metrics: dict[str, str], folders: list[Path]) -> dict[str, list[str]]:
    """Return the cells of each row, from the summaries of one seed or of several."""
    read = [pd.read_csv(folder / "summary.csv", keep_default_na=False) for folder in folders]
    key = ["split", "model", "decoding", "metric"]
    scores = [summary.set_index(key)[["value", "low", "high"]].apply(pd.to_numeric) for summary in read]
    cells: dict[str, list[str]] = {}
    for title, system in systems.items():
        name, decoding = system.split("/")
        seeds = [
            (each, model) for each in scores for model in fnmatch.filter(sorted({*each.index.unique("model")}), name)
        ]
        cells[title] = [
            _cell([each.loc[("test", model, decoding, metric)] for each, model in seeds], metric in WORDS.values())
            for metric in metrics.values()
        ]
    return cells


def _cell(seeds: list[pd.Series], counts: bool) -> str:
    times, digits = (1, 0) if counts else (100, 1)
    values = [float(each["value"]) * times for each in seeds]
    if len(values) > 1:
        return f"{mean(values):.{digits}f} ± {stdev(values):.{digits}f}"
    low, high = (float(seeds[0][end]) * times for end in ("low", "high"))
    return f"{values[0]:.{digits}f}" + ("" if low != low else f" ({low:.{digits}f}–{high:.{digits}f})")


def main() -> None:
    name, *folders = sys.argv[1:]
    experiment, systems, metrics = TABLES[name]
    command = f"snakemake --configfile {experiment}"
    if len(folders) > 1:
        command += f"; {len(folders)} seeds"
    table = {
        "command": command,
        "columns": ["test split, percent", *metrics],
        "experiment": experiment,
        "fingerprint": fingerprint(experiment),
        "rows": rows(systems, metrics, [Path(folder) for folder in folders]) | PRINTED.get(name, {}),
    }
    results.write({name: table})


if __name__ == "__main__":
    main()
