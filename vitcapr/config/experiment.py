"""The complete configuration of an experiment, as config.yaml holds it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from pydantic import Field, model_validator

from vitcapr.config.base import CaptionerName, Entry, ExperimentName, ModelName, Name, Section, with_default
from vitcapr.config.captioner import (
    BaselineConfig,
    CaptionerConfig,
    DecodingConfig,
    LanguageModelCaptionerConfig,
    PatchAttentionConfig,
    RerankingConfig,
    TransformerConfig,
)
from vitcapr.config.contradictions import contradictions
from vitcapr.config.data import DataConfig
from vitcapr.config.dual_encoder import FinetunedDualEncoderConfig, RetrieverConfig
from vitcapr.config.features import (
    BackboneConfig,
    FeaturesConfig,
    TagsConfig,
    TextConfig,
    TextEncoderConfig,
    TokenizerConfig,
    WordVectorsConfig,
)
from vitcapr.config.grid import GridConfig, VariantConfig, complete
from vitcapr.config.report import FiguresConfig, FiguresOrNone, MetricsConfig
from vitcapr.plugins import plugins
from vitcapr.rooms import furnished

_CONFIGS = (PatchAttentionConfig, BaselineConfig, TransformerConfig, LanguageModelCaptionerConfig)
if TYPE_CHECKING:
    AnyCaptionerConfig = CaptionerConfig
else:  # The section of a plugin is read here, once the plugin is complete: it imports the module of captioners.
    AnyCaptionerConfig = Annotated[
        Union[(*_CONFIGS, *(plugin.load("Config") for plugin in plugins("CAPTIONER").values()))],
        Field(discriminator="architecture"),
        with_default("architecture", "patch_attention"),
    ]


class RunConfig(Section):
    """The definitions that the workflow runs; by default all that the experiment names."""

    captioners: Annotated[list[str], Entry("captioners")] = []
    """Captioners to train and decode. If empty, decodings and rerankings must be empty too."""
    decodings: Annotated[list[str], Entry("decodings")] = []
    """Decodings of every captioner; by default greedy, beam and all that the experiment names."""
    rerankings: Annotated[list[str], Entry("rerankings")] = []
    """Rerankings of the captions of every captioner."""
    retrievers: Annotated[list[str], Entry("retrievers")] = []
    compared: list[str] = []
    """Retrievers and fine-tuned dual encoders to compare side by side, per language: their first results and
    their embedding spaces."""
    ablations: dict[Name, list[str]] = {}
    """For a retriever or fine-tuned dual encoder, those to compare with it on the same images, in tables/ablations.md:
    for example models that each lack one of its parts."""
    finetuned_dual_encoders: Annotated[list[str], Entry("finetuned_dual_encoders")] = []
    """Fine-tuned dual encoders to train, embed, score and draw."""
    query_banks: list[str] = []
    """Retrievers and fine-tuned dual encoders to score a second time with query-bank scores, as NAME-query_bank."""
    pools: bool = False
    """Also score these models on the held-out queries and candidates of the data set ``pairs`` (pools.npz)."""
    tags: bool = False
    """Write part-of-speech tags (text/tags/) even if no fine-tuned dual encoder reads them."""
    loss_curves: Annotated[dict[Name, list[str]], Entry("finetuned_dual_encoders")] = {}
    """Loss-curve figures by name; each lists the fine-tuned dual encoders whose losses it shows side by side."""
    splits: list[Literal["train", "validation", "test"]] = ["test"]


if not TYPE_CHECKING:
    DataConfig, RunConfig = furnished("Data", DataConfig), furnished("Run", RunConfig)


class ExperimentConfig(Section):
    """The configuration of an experiment. It may define more backbones, captioners, ... than ``run`` uses."""

    experiment: ExperimentName = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
    """Name of the experiment; its results are under results/<experiment>/."""
    seed: int = Field(0, ge=0)
    """Seed of every training, unless a model sets one."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device of all computation with torch; auto: the GPU if there is one."""
    data: DataConfig = Field(default_factory=lambda: DataConfig())
    text: TextConfig = TextConfig()
    """Cleaning of the captions, and selection of the words."""
    word_vectors: dict[Name, WordVectorsConfig] = {}
    backbones: dict[Name, BackboneConfig] = {}
    features: FeaturesConfig = FeaturesConfig()
    tags: TagsConfig = TagsConfig()
    captioners: dict[CaptionerName, AnyCaptionerConfig] = {}
    """Captioners and their training."""
    decodings: dict[Name, DecodingConfig] = {}
    """Ways to generate captions; greedy and beam always exist, and an entry with their name changes the keys that it
    gives."""
    text_encoders: dict[Name, TextEncoderConfig] = {}
    retrievers: dict[ModelName, RetrieverConfig] = {}
    """Dual encoders on stored features, and their training."""
    tokenizers: dict[Name, TokenizerConfig] = {}
    finetuned_dual_encoders: dict[ModelName, FinetunedDualEncoderConfig] = {}
    """Dual encoders whose image and text encoders are trained on decoded pictures."""
    rerankings: dict[Name, RerankingConfig] = {}
    """New orders of the candidates of a decoding."""
    metrics: MetricsConfig = MetricsConfig()
    """Scores of captions and their intervals."""
    figures: FiguresOrNone = FiguresConfig()
    """Formats and contents of the figures."""
    grid: list[GridConfig] = []
    variants: dict[Name, dict[Name, VariantConfig]] = {}
    run: RunConfig = RunConfig()

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, values: Any) -> Any:
        return complete(values) if isinstance(values, Mapping) else values

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        if mistakes := list(contradictions(self)):
            raise ValueError("\n".join(mistakes))
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
            for key in ("backbone", "layer", "language_model"):
                if getattr(self.captioners[start], key, None) != getattr(self.captioners[line[0]], key, None):
                    raise ValueError(f"captioners.{line[0]} starts from '{start}', which uses another {key}")
            if start in line:
                raise ValueError(f"captioners.{start} starts from itself")
            line.insert(0, start)
        return line


if not TYPE_CHECKING:
    ExperimentConfig = furnished("Experiment", ExperimentConfig)
