"""Alignments of two frozen encoders: ways to align them, compared over the number of training pairs."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Entry, Name, Section
from vitcapr.experiment.paths import FIGURES
from vitcapr.loader import Hooks, run_entries

FAMILIES = (
    *("linear", "mlp", "residual", "fusemix", "sail", "structure", "residuals", "cca_head", "cca_heads"),
    *("cca", "csa", "ridge", "procrustes", "asif", "local_cka"),
)
"""Heads that are trained, and closed forms."""
_ARRAY = r"(cls|patches)(_[1-9][0-9]*)?"
_INPUTS = re.compile(rf"{_ARRAY}(\+{_ARRAY})*(\+views)?(\+words)?")


class StudyConfig(Section):
    """Inputs of a study; the options of ``vitcapr align``."""

    inputs: list[str] = Field(["cls"], min_length=1)
    """Image features: cls, patches (their mean) or cls+patches; cls_6 and patches_6 are those of layer 6, if the store
    has it (layers); with +views, the mean over the views; with +words, the words of the captions beside the text
    features."""
    families: list[str] = []
    """Families to compare; FAMILY@INPUTS is fitted to these inputs alone. Empty: all families on all inputs."""
    sizes: list[Annotated[int, Field(ge=10)] | None] = []
    """Numbers of training pairs; null: all. Empty: 100, 300, 1000, 3000, 5000 and 10000, as far as the pairs suffice,
    and all."""
    seeds: int = Field(5, ge=1)
    """Number of seeds; each draws its own training pairs."""
    query_bank: bool = False
    """Score every system a second time with a query bank of its training pairs."""

    @model_validator(mode="after")
    def _families_are_known(self) -> Self:
        for name in self.inputs:
            if not _INPUTS.fullmatch(name):
                raise ValueError(
                    f"no image input '{name}'; give cls, patches, cls_6 or cls+patches, and +views or +words"
                )
        for family, inputs in self.fitted:
            if family not in FAMILIES:
                raise ValueError(f"no family '{family}'; the families are {', '.join(FAMILIES)}")
            if inputs and inputs not in self.inputs:
                raise ValueError(f"no inputs '{inputs}'; the inputs are {', '.join(self.inputs)}")
        return self

    @property
    def arrays(self) -> list[str]:
        """The arrays of the image store that the inputs read."""
        parts = (part for name in self.inputs for part in name.split("+"))
        return list(dict.fromkeys(part for part in parts if part not in ("views", "words")))

    @property
    def fitted(self) -> list[tuple[str, str]]:
        """Each family with the inputs that it alone is fitted to, or an empty string."""
        words = [family.partition("@") for family in self.families or FAMILIES]
        return [(name, inputs) for name, _, inputs in words]


class AlignmentConfig(StudyConfig):
    """A study on the features of two encoders of the experiment."""

    image: Annotated[str, Entry("backbones")]
    """Name of an entry of backbones."""
    views: Annotated[list[str], Entry("backbones", mirrored=True)] = []
    """Names of backbones that give other views of the same images: the same network on changed pictures (mirror)."""
    text: Annotated[str, Entry("text_encoders")]
    """Name of an entry of text_encoders."""

    @model_validator(mode="after")
    def _views_are_there(self) -> Self:
        if not self.views and any("+views" in name for name in self.inputs):
            raise ValueError("inputs with +views need an entry of views")
        return self


class Experiment(Section):
    alignments: dict[Name, AlignmentConfig] = {}


class Run(Section):
    alignments: Annotated[list[str], Entry("alignments")] = []
    """Comparisons of ways to align two encoders."""


def _run(config: Any) -> Iterable[tuple[str, AlignmentConfig]]:
    return run_entries(config, "alignments").items()


def _contradictions(config: Any) -> Iterator[str]:
    from vitcapr.config.contradictions import check_views

    for name, alignment in _run(config):
        yield from check_views(config, f"alignments.{name}.views", [alignment.image, *alignment.views])


def _pairs(config: Any) -> Iterator[tuple[str, int]]:
    for name, alignment in _run(config):
        yield f"alignments.{name}.sizes", max(filter(None, alignment.sizes), default=0)


def _files(experiment: Any, file: str) -> list[str]:
    return [f"{experiment.root}/alignments/{name}/{file}" for name in experiment.config.run.alignments]


def _notes(experiment: Any) -> Iterator[str]:
    folders = [file.removesuffix("/") for file in _files(experiment, "")]
    if folders and not (experiment.models.captioners or experiment.models.ranked):
        what = "summary.csv gets no scores: there is no captioner or retriever"
        yield f"{what}; those of alignments are in {', '.join(folders)}"


CURVE = f"{FIGURES}/alignments/{{alignment}}/recall"
ATLAS = f"{FIGURES}/atlas/atlas"
_FEWEST = 3
"""Inputs for which there is something to compare."""


def compared_inputs(config: Any) -> dict[str, str]:
    """Return the alignments by their encoders, if no two have the same ones and they compare several inputs."""
    alignments = run_entries(config, "alignments")
    named = {f"{one.image}/{one.text}": name for name, one in alignments.items()}
    several = sum(len(one.inputs) for one in alignments.values()) >= _FEWEST
    return named if len(named) == len(alignments) and several else {}


def captioners_by_input(experiment: Any) -> dict[str, str]:
    """Return the captioners by the input that they read; of those of one input, the first."""
    named: dict[str, str] = {}
    scored = "test" in experiment.models.splits and "cider" in experiment.config.metrics.caption
    for name in experiment.models.trained("captioners") if scored else ():
        one = experiment.config.captioners[name]
        layer = "" if one.layer is None else f"_{one.layer}"
        named.setdefault(f"{one.backbone}/{'patches' if one.attends else 'cls'}{layer}", name)
    return named


def _figures(experiment: Any) -> Iterator[tuple[str, dict[str, str]]]:
    for name, one in _run(experiment.config):
        if len(one.sizes) != 1:  # With one number of pairs, the table says it.
            yield CURVE, {"alignment": name}
    if compared_inputs(experiment.config):
        yield ATLAS, {}


HOOKS = Hooks(
    contradictions=_contradictions,
    facts=lambda config: [("alignments", [f"{name} ({one.image} and {one.text})" for name, one in _run(config)])],
    arrays=lambda config: [(f"alignments.{name}", [one.image, *one.views], one.arrays) for name, one in _run(config)],
    pairs=_pairs,
    figures=_figures,
    tables=lambda experiment: _files(experiment, "tables.md"),
    page=lambda experiment: _files(experiment, "page_section.json"),
    notes=_notes,
)
