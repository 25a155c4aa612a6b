"""The files that the first page shows, and the command on it."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vitcapr.config.base import from_here
from vitcapr.config.dual_encoder import DualEncoderConfig
from vitcapr.experiment import paths
from vitcapr.files import canonical_json
from vitcapr.loader import ask, sections_to_run


def page_files(experiment: Any) -> list[str]:
    """Return the files in the folder of the experiment that the first page shows."""
    targets, captioning = experiment.targets, experiment.captioning
    split, models, config = targets.page_split, experiment.models, experiment.config
    captions = captioning.captions(models.needed_decodings)
    claims, attention = captioning.claims(captions), captioning.attention[:1]
    captioned = [paths.fill(path, split=split) for path in (*captions.values(), *claims.values())]
    ranked, retrievers = models.representatives(models.ranked), config.retrievers
    trained = [("captioners", name) for name in models.trained("captioners")]
    trained += [("retrievers", name) for name in models.trained("retrievers") if retrievers[name].training.phases]
    for section in sections_to_run(DualEncoderConfig):
        trained += [(section, name) for name in models.representatives(getattr(config.run, section), section)]
    with_history = [*trained, *(("backbones", name) for name in models.trained("backbones"))]
    return [
        *captioned,
        *(targets.path(paths.ATTENTION, **{**each, "split": split}) for each in attention),
        *(experiment.retrieval.embeddings(name, split) for name in ranked),
        *targets.compared_ranks.values(),
        *paths.model_files(targets.path(paths.CARD), trained).values(),
        *paths.model_files(targets.path(paths.HISTORY), with_history).values(),
        *targets.differences,
        *ask("page", experiment),
    ]


def run_again(configfiles: list[Path], changes: Mapping[str, Any]) -> str:
    """Return the command that runs an experiment.

    >>> run_again([Path("experiments/bert-vit.yaml")], {"seed": 3})
    'snakemake --cores all --configfile experiments/bert-vit.yaml --config seed=3'
    """
    words = ["snakemake", "--cores", "all"]
    if configfiles:
        words += ["--configfile", *map(from_here, configfiles)]
    if changes:
        words.append("--config")
        words += [f"{key}={each if isinstance(each, str) else canonical_json(each)}" for key, each in changes.items()]
    return shlex.join(words)
