"""The path of every result, with the wildcards of its job, and the places of a run on this machine.

Rules use the patterns as they are.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

RESULTS = Path("results")
"""The folder of all results."""
_PACKAGE = Path(__file__).parents[1]
WORKFLOW = _PACKAGE / "project" if (_PACKAGE / "project").is_dir() else _PACKAGE.parent
"""The folder with the Snakefile, the rules, ``config.yaml``, the profiles and the experiments: in the installed
package, or the checkout."""
SNAKEFILE = str(WORKFLOW / "Snakefile")

ROOT = f"{RESULTS}/{{experiment}}"
"""The folder of an experiment."""

# The data set and its texts.
DATA = f"{ROOT}/data"
MANIFEST = f"{DATA}/manifest.json"
PAIRS = f"{DATA}/pairs.parquet"
CLEANING = f"{DATA}/cleaning.json"
POOLS = f"{DATA}/pools.npz"
TEXT = f"{ROOT}/text"
VOCABULARY = f"{TEXT}/vocabulary.json"
TOKENS = f"{TEXT}/tokens.npz"
WORD_VECTORS = f"{TEXT}/word_vectors/{{vectors}}/vectors.npy"
COVERAGE = f"{TEXT}/word_vectors/{{vectors}}/coverage.json"
PARAPHRASES = f"{TEXT}/paraphrases/{{split}}"

# Sealed stores. The chunks are in a folder that no rule declares.
FEATURES = f"{ROOT}/features/{{backbone}}/manifest.json"
PART = f"{ROOT}/features/{{backbone}}/parts/{{task}}.json"
TEXT_FEATURES = f"{ROOT}/text_features/{{encoder}}/manifest.json"
STATISTICS = f"{ROOT}/features/statistics.json"
STATISTICS_TABLE = f"{ROOT}/tables/feature_statistics.md"

# Folders of trained models, and files of any of them.
TRAINED_BACKBONE = f"{ROOT}/backbones/trained"
CAPTIONER = f"{ROOT}/captioners/{{captioner}}"
RETRIEVER = f"{ROOT}/retrievers/{{retriever}}"
MODEL = f"{ROOT}/{{section}}/{{model}}"
WEIGHTS = f"{MODEL}/best.safetensors"
CARD = f"{MODEL}/card.json"
HISTORY = f"{MODEL}/history.csv"
GPU_USE = f"{MODEL}/gpu.csv"

# Captions, embeddings, and weights that the validation split selects. A reranking stands in the place of a decoding.
CAPTIONS = f"{ROOT}/captions/{{captioner}}/{{decoding}}/{{split}}/captions.json"
ATTENTION = f"{ROOT}/captions/{{captioner}}/{{decoding}}/{{split}}/attention.npz"
CLAIMS = f"{ROOT}/captions/{{captioner}}/{{decoding}}/{{split}}/claims.json"
RERANKED = f"{ROOT}/captions/{{captioner}}/{{reranking}}/{{split}}/captions.json"
RERANKING_WEIGHT = f"{ROOT}/reranking/{{captioner}}/{{reranking}}/weight.json"
EMBEDDINGS = f"{ROOT}/embeddings/{{embedded}}/{{split}}/embeddings.npz"
QUERY_BANK_WEIGHT = f"{ROOT}/query_banks/{{querybank_scores}}/weight.json"

# Scores.
CAPTION_SCORES = f"{ROOT}/metrics/{{captioner}}/{{decoding}}/{{split}}/metrics.json"
PER_IMAGE = f"{ROOT}/metrics/{{captioner}}/{{decoding}}/{{split}}/per_image.parquet"
SIMILARITY = f"{ROOT}/metrics/{{captioner}}/{{decoding}}/{{split}}/similarity.json"
RETRIEVAL_SCORES = f"{ROOT}/metrics/retrieval/{{scored}}/{{split}}/metrics.json"
RANKS = f"{ROOT}/metrics/retrieval/{{scored}}/{{split}}/ranks.npz"
POOL_SCORES = f"{ROOT}/metrics/retrieval/{{scored}}/pools/metrics.json"
LANGUAGE_SCORES = f"{ROOT}/metrics/languages/{{polyglot}}/{{split}}/metrics.json"
COMPARISON = f"{ROOT}/comparisons/{{captioner}}/{{decoding}}/{{split}}/comparison.json"
COMPARISON_TABLE = f"{ROOT}/comparisons/{{captioner}}/{{decoding}}/{{split}}/comparison.md"

# Tables and pages.
SUMMARY = f"{ROOT}/summary.csv"
SCORE_TABLE = f"{ROOT}/tables/scores.md"
SPREAD = f"{ROOT}/tables/spread.csv"
SPREAD_PAIRS = f"{ROOT}/tables/spread_pairs.csv"
SPREAD_TABLE = f"{ROOT}/tables/spread.md"
DIFFERENCES = f"{ROOT}/tables/differences.csv"
DIFFERENCE_TABLE = f"{ROOT}/tables/differences.md"
ABLATIONS = f"{ROOT}/tables/ablations.csv"
ABLATION_TABLE = f"{ROOT}/tables/ablations.md"

FIGURES = f"{ROOT}/figures"


def fill(pattern: str, **wildcards: object) -> str:
    """Return a pattern with the values of some wildcards; others stay.

    >>> fill(SPREAD, experiment="made")
    'results/made/tables/spread.csv'
    """
    for name, value in wildcards.items():
        pattern = pattern.replace(f"{{{name}}}", str(value))
    return pattern


def model_files(pattern: str, models: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a file of each model, given as section and name, by names such as ``captioners/plain``."""
    return {f"{section}/{name}": fill(pattern, section=section, model=name) for section, name in models}


def log(stage: str, *wildcards: str) -> str:
    """Return the log of a job, which its wildcards name.

    >>> log("decode", "captioner", "split")
    'results/{experiment}/logs/decode/{captioner}.{split}.log'
    """
    job = ".".join(f"{{{name}}}" for name in wildcards)
    return f"{ROOT}/logs/{stage}{f'/{job}' if job else ''}.log"


_GPUS = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")
"""Devices of NVIDIA's driver, of AMD's, and of both under Windows."""


def gpu_exists() -> bool:
    """Whether this machine has the driver of a GPU. It does not import torch."""
    return any(Path(device).exists() for device in _GPUS)


def conda_environment(name: str) -> str:
    """Return the path of ``envs/NAME.yaml``: Snakemake would look for a relative path beside the rules that use it."""
    return str(WORKFLOW / "envs" / f"{name}.yaml")


def can_only_be_a_folder(source: str) -> bool:
    """Return whether the source of a model is no hub id, which is a name or two with a slash between."""
    return Path(source).is_absolute() or source.startswith((".", "~")) or source.count("/") > 1


def stores_root(results: Path = RESULTS) -> Path:
    """Return the folder of all feature stores: VITCAPR_STORES (a group can share it), else ``results/stores``."""
    shared = os.environ.get("VITCAPR_STORES")
    return Path(shared).expanduser() if shared else results / "stores"


def find_store(name: str, results: Path = RESULTS) -> Path:
    """Return the sealed manifest of a store: in the folder of all stores if it exists there, else at this path."""
    place = stores_root(results) / name
    folder = place if place.exists() else Path(name).expanduser()
    return folder if folder.suffix == ".json" else folder / "manifest.json"


def extend_path() -> None:
    """Make the rules use the Python that runs Snakemake, even if its environment is not activated, and our sbatch.

    A rule's conda environment is activated later and takes precedence.
    """
    first = [str(Path(sys.executable).parent), str(WORKFLOW / "profiles/slurm/bin")]
    os.environ["PATH"] = os.pathsep.join([*first, os.environ.get("PATH", "")])
