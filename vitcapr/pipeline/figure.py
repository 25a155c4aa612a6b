"""The declaration of a figure: its files, its inputs and its caption in the report."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from vitcapr.config.experiment import ExperimentConfig

MANIFEST = "results/{experiment}/data/manifest.json"


class Experiment(Protocol):
    """What the declaration of a figure may ask of an experiment. Paths are those of the rules."""

    @property
    def config(self) -> "ExperimentConfig": ...

    @property
    def on_cluster(self) -> bool:
        """Whether the jobs run on other machines, whose GPUs are not seen here."""

    @property
    def splits(self) -> list[str]:
        """The splits that are captioned and scored."""

    @property
    def pooled_splits(self) -> list[str]:
        """The splits that the queries and candidates of pools come from."""

    @property
    def captions(self) -> dict[str, str]:
        """The captions of every system, by its name, with the wildcard ``split``."""

    def claims(self, captions: Mapping[str, str]) -> dict[str, str]:
        """The claims of captions beside the captions, where a room checks them."""

    @property
    def attention(self) -> list[dict[str, str]]:
        """The captions with stored attention, as wildcards."""

    @property
    def retrievals(self) -> list[dict[str, str]]:
        """The models and splits whose retrieval is drawn, as wildcards."""

    @property
    def compared(self) -> dict[str, dict[str, str]]:
        """For each language, the models to draw side by side and the names of their embeddings."""

    @property
    def recall_systems(self) -> dict[str, str]:
        """The names of the scores in the figure of recall, each with its system."""

    @property
    def pair_families(self) -> dict[str, list[str]]:
        """For each retriever with a varied number of training pairs, the retrievers that a grid made of it."""

    @property
    def pixel_backbones(self) -> list[str]:
        """The backbones to fine-tune on decoded pixels."""

    def trained(self, section: str) -> list[str]:
        """The models of a section that the experiment trains; of models that differ only in their seed, the first."""

    def rolls_out(self, backbone: str) -> bool:
        """Whether the attention of a backbone can be rolled out."""

    def candidates(self, wildcards: Any) -> str:
        """The captions that a reranking reorders."""

    def trained_backbone(self, name: str) -> list[str]:
        """The files of a backbone, if the experiment trains it."""

    def backbone_source(self, name: str) -> str:
        """The hub id or folder of a backbone."""


@dataclass(frozen=True)
class Figure:
    """The declaration from which the rule of a figure is made.

    Attributes:
        files: paths of the pictures below ``results/<experiment>/figures``, with wildcards, without the suffix of the
            format.
        inputs: the files that the figure reads, by the stage's parameters: a path, a list, a dictionary of files by
            their names, or a function of the wildcards that returns one of them.
        each: the wildcards of every figure that the experiment asks for.
        caption: the caption in the report.
        category, subcategory, labels: the position in the report.
        values: values that are not wildcards, by the stage's parameters.
        tables: further outputs below ``results/<experiment>/figures``, by the stage's parameters.
        priority, mem_mb, runtime: the priority and the resources of the rule.
    """

    files: Callable[[Experiment], list[str]]
    inputs: Callable[[Experiment], dict[str, Any]]
    caption: str
    category: str
    labels: Mapping[str, str]
    subcategory: str | None = None
    each: Callable[[Experiment], Iterable[Mapping[str, str]]] = lambda _: [{}]
    values: Callable[[Experiment], dict[str, Any]] = lambda _: {}
    tables: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0
    mem_mb: int = 4000
    runtime: int = 15
