"""Configuration of the scores of captions, of their intervals, and of what figures and the first page show."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypedDict

from pydantic import AfterValidator, BeforeValidator, Field

from vitcapr.config.base import DATA, Entry, Section, StageSettings, UserPath
from vitcapr.config.features import TextEncoderConfig
from vitcapr.loader import part_names

CAPTION_METRICS = tuple(part_names("METRIC"))
"""The names of all metrics of captions, those of extensions included."""


if TYPE_CHECKING:
    CaptionMetricName = str
else:
    CaptionMetricName = Literal[CAPTION_METRICS]


FOR_ENGLISH = frozenset({"chair", "meteor", "spice"})
"""The metrics that read English alone; captions in other languages are scored by the others."""


class ClipScoreConfig(Section):
    """CLIPScore and RefCLIPScore, by the two halves of one model."""

    backbone: Annotated[str, Entry("backbones")]
    """The image half: a backbone with output: aligned."""
    text_encoder: Annotated[str, Entry("text_encoders")]
    """The text half: a text encoder of the same checkpoint with output: aligned."""


class Resampling(TypedDict):
    """Bootstrap samples over images."""

    samples: int
    seed: int


class MetricsConfig(Section):
    caption: list[CaptionMetricName] = ["bleu", "meteor", "rouge_l", "cider", "diversity"]
    """Modules of vitcapr.metrics.captions; docs/metrics.md explains each score. Of these, chair, meteor and spice score
    English captions only."""
    instances: Annotated[list[UserPath], DATA] = []
    """instances_*.json files of COCO (looked up under VITCAPR_DATA first), which the metric chair needs."""
    clip_score: ClipScoreConfig | None = None
    """null: no CLIPScore."""
    sampled_images: dict[Literal["train", "validation", "test"], Annotated[int, Field(ge=1)]] = {}
    """Number of images of a split whose captions are scored; other splits are scored whole. Training, validation and
    retrieval do not use the sample."""
    bootstrap_samples: int = Field(1000, ge=0)
    """Bootstrap samples of the images for the 95 % intervals; 0: no intervals."""

    def caption_in(self, language: str) -> list[str]:
        """Return the metrics of captions in a language."""
        return [name for name in self.caption if language == "en" or name not in FOR_ENGLISH]

    @property
    def resampling(self) -> Resampling:
        return {"samples": self.bootstrap_samples, "seed": 0}


ENCODERS = frozenset({"metrics.clip_score"})
"""The setting that only score_similarity needs."""


SCORERS = ENCODERS | {"metrics.caption", "metrics.instances", "metrics.sampled_images"}
"""Settings that only caption scores need. They are execution only for stages that use only the intervals."""


class LanguageSettings(StageSettings):
    """The settings of the stages that read references."""

    language: str = "en"

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        return cls(language=config.text.language)


class ScoreSettings(LanguageSettings):
    """The settings of the stages that score captions."""

    metrics: MetricsConfig = MetricsConfig()

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        language = config.text.language
        metrics = config.metrics.model_copy(update={"caption": config.metrics.caption_in(language)})
        return cls(metrics=metrics, language=language)


class IntervalSettings(StageSettings):
    """Number of resamples and their seed, for the stages that score."""

    metrics: MetricsConfig = MetricsConfig()


class SimilaritySettings(ScoreSettings):
    """The settings of the stage ``score_similarity``."""

    clip: TextEncoderConfig
    """The text half of the model whose image half made the features."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:  # noqa: ARG003
        clip = config.text_encoders[config.metrics.clip_score.text_encoder]
        return cls(metrics=config.metrics, language=config.text.language, clip=clip)


def _distinct(names: list[str]) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"'{name}' is listed twice")
    return names


Distinct = Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_distinct)]


def _none(value: Any) -> Any:
    return {"formats": []} if value in ("none", None) else value


class FiguresConfig(Section):
    formats: list[Literal["png", "pdf", "svg"]] = ["png", "pdf"]
    """Formats of every figure. Empty, or ``figures: none``: no figures; the first page keeps its examples."""
    examples: int = Field(12, ge=1)
    """Images in the sheet of captioned examples."""
    examples_first: Distinct = []
    """Images that come first, by id or file name, wherever examples are drawn: captions, captions before and after
    reranking, failures of retrieval, and the query of models side by side. Random ones follow."""
    examples_words: Distinct = []
    """Words or phrases: images and captions of the data set that hold any of them come next."""
    attention_first: Distinct = []
    """Images whose attention is drawn first, by id or file name. Random images follow up to two."""
    attention_words: Distinct = []
    """Words whose attention is drawn, where a caption holds any of them; empty: every word. There are as many further
    images as words, so that each word has an image, if any caption holds it."""

    def examples_of(self, count: int) -> dict[str, Any]:
        """Return the arguments of :class:`vitcapr.report.figures.examples.Choice` for ``count`` examples."""
        return {"count": count, "images": self.examples_first, "words": self.examples_words}

    @property
    def attended(self) -> dict[str, Any]:
        """The same for the images whose attention is drawn."""
        count = max(2, len(self.attention_first) + len(self.attention_words))
        return {"count": count, "images": self.attention_first, "words": self.attention_words}


FiguresOrNone = Annotated[FiguresConfig, BeforeValidator(_none, json_schema_input_type=FiguresConfig | Literal["none"])]
"""``none`` draws no figures."""


class FigureSettings(StageSettings):
    """The settings of the figure stages."""

    figures: FiguresConfig = FiguresConfig()
