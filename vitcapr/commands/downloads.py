"""Source, licence and size of each file and model."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

from vitcapr.config.base import find_backbone
from vitcapr.experiment.experiment import Experiment
from vitcapr.formats.tables import Table, row
from vitcapr.pipeline.paths import can_only_be_a_folder


class Obtainable(BaseModel):
    """A file, a folder or a model, by the names under which experiments ask for it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    names: tuple[str, ...]
    what: str
    source: str
    licence: str
    size: str


def read_obtainable() -> list[Obtainable]:
    text = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return TypeAdapter(list[Obtainable]).validate_python(yaml.safe_load(text))


def models_of(experiment: Experiment) -> dict[str, str]:
    """The checkpoints that an experiment starts from, hub ids and names of folders, and the revision of each."""
    config, used = experiment.config, experiment.models
    names = dict.fromkeys([*used.extracted, *used.pixel_backbones])
    backbones = (config.backbones[name] for name in names if not used.is_trained(name))
    models = {backbone.source: backbone.revision for backbone in backbones}
    users = [config.captioners[name] for name in used.trained_captioners]
    for user in (*users, *(config.rerankings[name].weighing for name in used.rerankings)):
        if (model := getattr(user, "language_model", None)) is not None:
            models[model.source] = model.revision
    for name in [*used.extracted_texts, *(used.scoring_encoders if used.captioners else [])]:
        if (encoder := config.text_encoders[name]).output != "word_vectors":
            models[encoder.source] = encoder.revision
    for name in used.needed_dual_encoders:
        for tower in config.finetuned_dual_encoders[name].text.values():
            if tower.source is not None:
                models[tower.source] = tower.revision
    return models


def missing_lines(experiment: Experiment) -> list[str]:
    """A line for every file and every checkpoint that is not on this machine, with its source."""
    known = {name: one for one in read_obtainable() for name in one.names}
    missing = {key: path for key, path in experiment.user_files.items() if not path.exists()}
    lines = [f"missing: {key}: {path}{_whence(known.get(str(path)))}" for key, path in missing.items()]
    for source in models_of(experiment):
        if not find_backbone(source).is_dir():
            if can_only_be_a_folder(source):
                lines.append(f"missing: {source}: no such folder")
            else:
                where = "the hub or its cache will be asked for" if "/" in source else "not under VITCAPR_BACKBONES:"
                lines.append(f"{where} {source}{_whence(known.get(source))}")
    return lines


def obtainable_table(needed: Mapping[str, Sequence[str]]) -> Table:
    """File, where it comes from, licence, size, and who needs it.

    Args:
        needed: the names that each experiment asks for.
    """
    return Table(
        "",
        ("name in the experiments", "what it is", "where it comes from", "licence", "size", "needed by"),
        tuple(
            row(
                ", ".join(f"`{name}`" for name in one.names),
                one.what,
                one.source,
                one.licence,
                one.size,
                ", ".join(f"`{by}`" for by, names in needed.items() if set(names) & set(one.names)),
            )
            for one in read_obtainable()
        ),
        align="llllll",
        name="files",
    )


def _whence(one: Obtainable | None) -> str:
    return "" if one is None or one.source == "yours" else f" ({one.what}, {one.size}, {one.licence}): {one.source}"
