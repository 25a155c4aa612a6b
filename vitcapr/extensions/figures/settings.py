"""The figures that a run draws: their paths, and those of an experiment."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from vitcapr.experiment import paths
from vitcapr.experiment.paths import FIGURES, fill, gpu_exists, model_files
from vitcapr.loader import Hooks

# Paths have no ending: a picture has the formats of the experiment.
ATTENDED = f"{FIGURES}/attention/{{captioner}}/{{decoding}}/{{split}}/attention-{{number}}"
CAPTION_LENGTHS = f"{FIGURES}/text/lengths"
WORD_FREQUENCIES = f"{FIGURES}/text/vocabulary"
CAPTION_SHEET = f"{FIGURES}/captions/{{split}}/captions"
CURVES = {
    "captioners": f"{FIGURES}/curves/curves",
    "retrievers": f"{FIGURES}/curves/retrievers",
    "backbones": f"{FIGURES}/curves/backbone",
}
LEARNING_CURVE = f"{FIGURES}/learning_curve/{{split}}/learning_curve"
GPU_CURVES = f"{FIGURES}/gpu/gpu"
SPACES = [f"{FIGURES}/embeddings/{{retriever}}/{{split}}/{name}" for name in ("tsne", "cosines")]
RECALL = f"{FIGURES}/recall/{{split}}/recall"
RERANKED_SHEET = f"{FIGURES}/reranked/{{captioner}}/{{reranking}}/{{split}}/reranked"
FAILURES = [f"{FIGURES}/retrieved/{{retriever}}/{{split}}/{name}" for name in ("image_to_text", "text_to_image")]
_TOGETHER = f"{FIGURES}/side_by_side/{{language}}/{{split}}"
SIDE_BY_SIDE = [f"{_TOGETHER}/{name}" for name in ("top_captions", "top_images", "spaces")]
SIDE_BY_SIDE_TABLE = f"{_TOGETHER}/found.md"
POOLS = "pools"
"""In place of a split: the queries set apart, and their candidates."""


def _figures(experiment: Any) -> Iterator[tuple[str | list[str], dict[str, str]]]:
    models, retrieval = experiment.models, experiment.retrieval
    yield CAPTION_LENGTHS, {}
    yield WORD_FREQUENCIES, {}
    for wildcards in experiment.captioning.attention:
        yield attended(experiment), wildcards
    yield curve_patterns(experiment), {}
    if trained_on_gpu(experiment):
        yield GPU_CURVES, {}
    for wildcards in retrieval.retrievals:
        yield SPACES, wildcards
        yield FAILURES, wildcards
    for split in models.splits:
        if experiment.captioning.captions():
            yield CAPTION_SHEET, {"split": split}
        if retrieval.recall_scores:
            yield RECALL, {"split": split}
        if retrieval.pair_families:
            yield LEARNING_CURVE, {"split": split}
    for captioner, reranking, split in product(models.captioners, models.rerankings_by("retriever"), models.splits):
        yield RERANKED_SHEET, {"captioner": captioner, "reranking": reranking, "split": split}
    for wildcards in side_by_side(experiment):
        yield SIDE_BY_SIDE, wildcards


def _tables(experiment: Any) -> list[str]:
    drawn = side_by_side(experiment) if experiment.config.figures.formats else []
    return [experiment.targets.path(SIDE_BY_SIDE_TABLE, **wildcards) for wildcards in drawn]


def attended(experiment: Any) -> list[str]:
    """Return the patterns of the pictures with attention."""
    count = experiment.config.figures.attended["count"]
    return [fill(ATTENDED, number=number) for number in range(1, count + 1)]


def with_history(experiment: Any) -> list[tuple[str, str]]:
    """Return the models whose training curves are drawn, as section and name."""
    names = {section: experiment.models.trained(section) for section in CURVES}
    retrievers = experiment.config.retrievers
    names["retrievers"] = [name for name in names["retrievers"] if retrievers[name].training.phases]
    return [(section, name) for section, models in names.items() for name in models]


def with_card(experiment: Any) -> list[tuple[str, str]]:
    """Return those of them that have a card."""
    return [(section, name) for section, name in with_history(experiment) if section != "backbones"]


def curve_patterns(experiment: Any) -> list[str]:
    """Return the patterns of the figures with training curves, one for each section."""
    return [CURVES[section] for section in dict(with_history(experiment))]


def trained_models(experiment: Any) -> list[tuple[str, str]]:
    """Return the models whose training notes the use of a GPU, as section and name."""
    models = experiment.models
    return [(section, name) for section in models.trained_sections for name in models.trained(section)]


def trained_on_gpu(experiment: Any) -> bool:
    """Whether models train on a GPU: on a cluster, on this machine, or in a run whose results are here."""
    models = trained_models(experiment)
    uses = model_files(experiment.targets.path(paths.GPU_USE), models).values()
    here = experiment.on_cluster or gpu_exists() or any(map(_has_samples, map(Path, uses)))
    return bool(models) and here and experiment.config.device != "cpu"


def _has_samples(path: Path) -> bool:
    # The first two lines are the device and the names of the columns.
    return path.is_file() and path.read_text(encoding="utf-8").count("\n") > 2


def family_files(experiment: Any, pattern: str) -> dict[str, list[str]]:
    """Return a file of every training whose number of pairs varies in a grid, by its system."""
    families = experiment.retrieval.pair_families.items()
    return {
        system: [fill(pattern, section="retrievers", model=name, scored=name) for name in names]
        for system, names in families
    }


def side_by_side(experiment: Any) -> list[dict[str, str]]:
    """Return the wildcards of the figures that compare models of one language."""
    places = [*experiment.models.splits, *([POOLS] if experiment.config.run.pools else [])]
    return [{"language": language, "split": place} for language in experiment.retrieval.compared for place in places]


def compared_embeddings(experiment: Any, job: Any) -> dict[str, list[str]]:
    """Return the embeddings of each model: of pools, those of each split that candidates come from."""
    splits = experiment.models.pooled_splits if job.split == POOLS else [job.split]
    pattern, models = fill(paths.EMBEDDINGS, experiment=job.experiment), experiment.retrieval.compared
    return {
        model: [fill(pattern, embedded=name, split=split) for split in splits]
        for model, name in models[job.language].items()
    }


HOOKS = Hooks(figures=_figures, tables=_tables)
