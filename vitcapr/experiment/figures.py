"""The figures of an experiment: the pictures of their rules, and those that a run draws."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from vitcapr.config.experiment import unique
from vitcapr.experiment import paths
from vitcapr.loader import ask
from vitcapr.pipeline.locations import WORKFLOW, gpu_exists
from vitcapr.pipeline.rule import Wildcards

if TYPE_CHECKING:
    from vitcapr.experiment.experiment import Experiment

CAPTION = str(WORKFLOW / "workflow/report/figure.rst")
"""The caption in Snakemake's report: the rule's parameter ``caption``."""
POOLS = "pools"
"""In place of a split: the queries set apart, and their candidates."""


def in_formats(experiment: "Experiment", patterns: str | Iterable[str]) -> list[str]:
    """Return the files of a figure in every format, from paths without its ending.

    The rules of an experiment without figures have pictures as well, which no target asks for.
    """
    files = [patterns] if isinstance(patterns, str) else patterns
    formats = unique(experiment.config.figures.formats) or ["png"]
    return [f"{file}.{suffix}" for file in files for suffix in formats]


def targets(experiment: "Experiment") -> list[str]:
    """List the pictures that a run draws, and the tables beside them."""
    if not experiment.config.figures.formats or experiment.models.data_alone:
        return []
    return [
        paths.fill(file, experiment=experiment.name, **wildcards)
        for patterns, wildcards in (*_figures(experiment), *ask("figures", experiment))
        for file in in_formats(experiment, patterns)
    ] + [
        paths.fill(paths.SIDE_BY_SIDE_TABLE, experiment=experiment.name, **wildcards)
        for wildcards in side_by_side(experiment)
    ]


def _figures(experiment: "Experiment") -> Iterator[tuple[str | list[str], Mapping[str, str]]]:
    """Yield the patterns of every figure that a run draws, with the values of their wildcards."""
    models, retrieval = experiment.models, experiment.retrieval
    yield paths.CAPTION_LENGTHS, {}
    yield paths.WORD_FREQUENCIES, {}
    for wildcards in experiment.captioning.attention:
        yield attended(experiment), wildcards
    yield curve_patterns(experiment), {}
    if trained_on_gpu(experiment):
        yield paths.GPU_CURVES, {}
    for wildcards in retrieval.retrievals:
        yield paths.SPACES, wildcards
        yield paths.FAILURES, wildcards
    for split in models.splits:
        if experiment.captioning.captions():
            yield paths.CAPTION_SHEET, {"split": split}
        if retrieval.recall_systems:
            yield paths.RECALL, {"split": split}
        if retrieval.pair_families:
            yield paths.LEARNING_CURVE, {"split": split}
    for captioner, reranking, split in product(models.captioners, models.rerankings_by("retriever"), models.splits):
        yield paths.RERANKED_SHEET, {"captioner": captioner, "reranking": reranking, "split": split}
    for wildcards in side_by_side(experiment):
        yield paths.SIDE_BY_SIDE, wildcards


def attended(experiment: "Experiment") -> list[str]:
    """Return the patterns of the pictures with attention."""
    count = experiment.config.figures.attended["count"]
    return [paths.fill(paths.ATTENDED, number=number) for number in range(1, count + 1)]


def with_history(experiment: "Experiment") -> list[tuple[str, str]]:
    """Return the models whose training curves are drawn, as section and name."""
    names = {section: experiment.models.trained(section) for section in paths.CURVES}
    retrievers = experiment.config.retrievers
    names["retrievers"] = [name for name in names["retrievers"] if retrievers[name].training.phases]
    return [(section, name) for section, models in names.items() for name in models]


def with_card(experiment: "Experiment") -> list[tuple[str, str]]:
    """Return those of them that have a card."""
    return [(section, name) for section, name in with_history(experiment) if section != "backbones"]


def curve_patterns(experiment: "Experiment") -> list[str]:
    """Return the patterns of the figures with training curves, one for each section."""
    return unique(paths.CURVES[section] for section, _ in with_history(experiment))


def model_files(pattern: str, models: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a file of each model, by names such as ``captioners/plain``."""
    return {f"{section}/{name}": paths.fill(pattern, section=section, model=name) for section, name in models}


def trained_models(experiment: "Experiment") -> list[tuple[str, str]]:
    """Return the models whose training notes the use of a GPU, as section and name."""
    models = experiment.models
    return [(section, name) for section in models.trained_sections for name in models.trained(section)]


def trained_on_gpu(experiment: "Experiment") -> bool:
    """Whether models train on a GPU: on a cluster, on this machine, or in a run whose results are here."""
    models = trained_models(experiment)
    uses = model_files(paths.fill(paths.GPU_USE, experiment=experiment.name), models).values()
    here = experiment.on_cluster or gpu_exists() or any(map(_has_samples, map(Path, uses)))
    return bool(models) and here and experiment.config.device != "cpu"


def _has_samples(path: Path) -> bool:
    # The first two lines are the device and the names of the columns.
    return path.is_file() and path.read_text(encoding="utf-8").count("\n") > 2


def recall_scores(experiment: "Experiment") -> dict[str, list[str]]:
    """Return the files of scores of each retrieval system."""
    files: dict[str, list[str]] = {}
    for name, system in experiment.retrieval.recall_systems.items():
        files.setdefault(system, []).append(paths.fill(paths.RETRIEVAL_SCORES, scored=name))
    return files


def family_files(experiment: "Experiment", pattern: str) -> dict[str, list[str]]:
    """Return a file of every training whose number of pairs varies in a grid, by its system."""
    families = experiment.retrieval.pair_families.items()
    return {
        system: [paths.fill(pattern, section="retrievers", model=name, scored=name) for name in names]
        for system, names in families
    }


def side_by_side(experiment: "Experiment") -> list[dict[str, str]]:
    """Return the wildcards of the figures that compare models of one language."""
    places = [*experiment.models.splits, *([POOLS] if experiment.config.run.pools else [])]
    return [{"language": language, "split": place} for language in experiment.retrieval.compared for place in places]


def compared_embeddings(experiment: "Experiment", job: Wildcards) -> dict[str, list[str]]:
    """Return the embeddings of each model: of pools, those of each split that candidates come from."""
    splits = experiment.models.pooled_splits if job.split == POOLS else [job.split]
    pattern, models = paths.fill(paths.EMBEDDINGS, experiment=job.experiment), experiment.retrieval.compared
    return {
        model: [paths.fill(pattern, embedded=name, split=split) for split in splits]
        for model, name in models[job.language].items()
    }
