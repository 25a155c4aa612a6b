"""The complete configuration of an experiment, as config.yaml holds it."""

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.alignment import AlignmentConfig
from vitcapr.config.base import Section
from vitcapr.config.captioner import AnyCaptionerConfig
from vitcapr.config.complete import complete
from vitcapr.config.consistency import contradictions
from vitcapr.config.data import DataConfig
from vitcapr.config.decoding import DecodingConfig
from vitcapr.config.features import BackboneConfig, FeaturesConfig, TrainedBackboneConfig
from vitcapr.config.figures import FiguresConfig
from vitcapr.config.finetuned_dual_encoder import FinetunedDualEncoderConfig, TokenizerConfig
from vitcapr.config.grid import GridConfig, VariantConfig
from vitcapr.config.metrics import MetricsConfig
from vitcapr.config.names import CaptionerName, ExperimentName, ModelName, Name
from vitcapr.config.pixels import PixelsConfig
from vitcapr.config.query_bank import QueryBankConfig
from vitcapr.config.reranking import RerankingConfig
from vitcapr.config.retriever import EmbedConfig, RetrieverConfig
from vitcapr.config.tags import TagsConfig
from vitcapr.config.text import TextConfig, WordVectorsConfig
from vitcapr.config.text_encoder import TextEncoderConfig


class RunConfig(Section):
    """The definitions that the workflow runs; by default all that the experiment names
    (:mod:`vitcapr.config.complete`)."""

    captioners: list[str] = []
    """Captioners to train and decode. If empty, decodings and rerankings must be empty too."""
    decodings: list[str] = []
    """Decodings of every captioner; greedy and beam if the experiment names none."""
    rerankings: list[str] = []
    """Rerankings of the captions of every captioner."""
    retrievers: list[str] = []
    alignments: list[str] = []
    """Comparisons of ways to align two encoders."""
    compared: list[str] = []
    """Retrievers and fine-tuned dual encoders to compare side by side, per language: their first results and
    their embedding spaces."""
    ablations: dict[Name, list[str]] = {}
    """For a retriever or fine-tuned dual encoder, those to compare with it on the same images, in tables/ablations.md:
    for example models that each lack one of its parts."""
    information: bool = False
    """Measure entropy and mutual information of the embeddings of retrievers and fine-tuned dual encoders; of the
    latter before training, too. Not on the training split."""
    finetuned_dual_encoders: list[str] = []
    """Fine-tuned dual encoders to train, embed, score and draw."""
    query_banks: list[str] = []
    """Retrievers and fine-tuned dual encoders to score a second time with query-bank scores, as NAME-query_bank."""
    pools: bool = False
    """Also score these models on the held-out queries and candidates of the data set ``pairs`` (pools.npz)."""
    tags: bool = False
    """Write part-of-speech tags (text/tags/) even if no fine-tuned dual encoder reads them."""
    loss_curves: dict[Name, list[str]] = {}
    """Loss-curve figures by name; each lists the fine-tuned dual encoders whose losses it shows side by side."""
    paper: Literal["vitcap-r", "blip2-flickr30k", "bert-vit"] | None = None
    """The paper whose published numbers the tables show beside the scores."""
    splits: list[Literal["train", "validation", "test"]] = ["test"]


class ExperimentConfig(Section):
    """The configuration of an experiment. It may define more backbones, captioners, ... than ``run`` uses."""

    experiment: ExperimentName = Field("demo", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
    """Name of the experiment; its results are under results/<experiment>/."""
    seed: int = Field(0, ge=0)
    """Seed of every training that sets no seed of its own."""
    data: DataConfig = DataConfig()
    text: TextConfig = TextConfig()
    word_vectors: dict[Name, WordVectorsConfig] = {}
    backbones: dict[Name, BackboneConfig] = {}
    trained_backbone: TrainedBackboneConfig = TrainedBackboneConfig()
    features: FeaturesConfig = FeaturesConfig()
    pixels: PixelsConfig = PixelsConfig()
    tags: TagsConfig = TagsConfig()
    captioners: dict[CaptionerName, AnyCaptionerConfig] = {}
    decodings: dict[Name, DecodingConfig] = {}
    text_encoders: dict[Name, TextEncoderConfig] = {}
    retrievers: dict[ModelName, RetrieverConfig] = {}
    alignments: dict[Name, AlignmentConfig] = {}
    embed: EmbedConfig = EmbedConfig()
    query_bank: QueryBankConfig = QueryBankConfig()
    tokenizers: dict[Name, TokenizerConfig] = {}
    finetuned_dual_encoders: dict[ModelName, FinetunedDualEncoderConfig] = {}
    rerankings: dict[Name, RerankingConfig] = {}
    metrics: MetricsConfig = MetricsConfig()
    figures: FiguresConfig = FiguresConfig()
    grid: list[GridConfig] = []
    """Definitions to multiply, for example over seeds. The list is empty after expansion."""
    variants: dict[Name, dict[Name, VariantConfig]] = {}
    """The variants that the grid made, by section and name; filled in by the grid."""
    run: RunConfig = RunConfig()

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, values: Any) -> Any:
        return complete(values) if isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if found := list(contradictions(self)):
            raise ValueError("\n".join(found))
        return self

    def start_chain(self, captioner: str) -> list[str]:
        """The captioner and all captioners that it starts from; the first one starts from no other.

        Raises:
            ValueError: a captioner is not defined, or it starts from itself.
        """
        line = [captioner]
        while (start := self.captioners[line[0]].start_from) is not None:
            if start not in self.captioners:
                raise ValueError(
                    f"captioners.{line[0]}.start_from names '{start}', which is not defined; "
                    f"defined: {sorted(self.captioners)}"
                )
            for key in ("backbone", "layer"):
                if getattr(self.captioners[start], key) != getattr(self.captioners[line[0]], key):
                    raise ValueError(f"captioners.{line[0]} starts from '{start}', which uses another {key}")
            if start in line:
                raise ValueError(f"captioners.{start} starts from itself")
            line.insert(0, start)
        return line
