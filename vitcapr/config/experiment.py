"""The complete configuration of an experiment, as config.yaml holds it, and the names of the models that it scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union

from pydantic import Field, model_validator

from vitcapr.config.base import (
    CaptionerName,
    Entry,
    ExperimentName,
    ModelName,
    Name,
    Section,
    named_entries,
    with_default,
)
from vitcapr.config.captioner import (
    BaselineConfig,
    CaptionerConfig,
    DecodingConfig,
    PatchAttentionConfig,
    RerankingConfig,
    TransformerConfig,
)
from vitcapr.config.contradictions import contradictions
from vitcapr.config.data import DataConfig
from vitcapr.config.dual_encoder import RetrieverConfig, ranked_sections
from vitcapr.config.features import (
    BackboneConfig,
    FeaturesConfig,
    TextConfig,
    TextEncoderConfig,
    WordVectorsConfig,
)
from vitcapr.config.grid import GridConfig, VariantConfig, complete
from vitcapr.config.report import FiguresConfig, FiguresOrNone, MetricsConfig
from vitcapr.loader import extend_section, parts

_CONFIGS = (PatchAttentionConfig, BaselineConfig, TransformerConfig)
if TYPE_CHECKING:
    AnyCaptionerConfig = CaptionerConfig
else:  # The section of a plugin is read here, once the plugin is complete: it imports the module of captioners.
    AnyCaptionerConfig = Annotated[
        Union[(*_CONFIGS, *(plugin.load("Config") for plugin in parts("CAPTIONER").values()))],
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
    """Dual encoders to compare side by side, per language: their first results and their embedding spaces."""
    ablations: dict[Name, list[str]] = {}
    """For a dual encoder, those to compare with it on the same images, in tables/ablations.md: for example models that
    each lack one of its parts."""
    query_banks: list[str] = []
    """Dual encoders to score a second time with query-bank scores, as NAME-query_bank."""
    pools: bool = False
    """Also score these models on the held-out queries and candidates of the data set ``pairs`` (pools.npz)."""
    splits: list[Literal["train", "validation", "test"]] = ["test"]

    def named(self, section: str) -> list[str]:
        """Return the names of definitions of a section that any key gives."""
        return unique(name for _, entry, names in named_entries(self, "") if entry.section == section for name in names)


if not TYPE_CHECKING:
    DataConfig, RunConfig = extend_section("Data", DataConfig), extend_section("Run", RunConfig)


class ExperimentConfig(Section):
    """The configuration of an experiment. It may define more backbones, captioners, ... than ``run`` uses."""

    experiment: ExperimentName = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")
    """Name of the experiment; its results are under results/<experiment>/."""
    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of every training, unless a model sets one."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device of all computation with torch; auto: the GPU if there is one."""
    data: DataConfig = Field(default_factory=lambda: DataConfig())
    text: TextConfig = TextConfig()
    """Cleaning of the captions, and selection of the words."""
    word_vectors: dict[Name, WordVectorsConfig] = {}
    backbones: dict[Name, BackboneConfig] = {}
    features: FeaturesConfig = FeaturesConfig()
    captioners: dict[CaptionerName, AnyCaptionerConfig] = {}
    """Captioners and their training."""
    decodings: dict[Name, DecodingConfig] = {}
    """Ways to generate captions; greedy and beam always exist, and an entry with their name changes the keys that it
    gives."""
    text_encoders: dict[Name, TextEncoderConfig] = {}
    retrievers: dict[ModelName, RetrieverConfig] = {}
    """Dual encoders on stored features, and their training."""
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

    def languages(self, model: str) -> Sequence[str]:
        """Return the languages that a dual encoder reads."""
        definitions = (getattr(self, section).get(model) for section in ranked_sections())
        languages = next((each.languages for each in definitions if each is not None), None)
        return [self.text.language] if languages is None else languages

    def start_chain(self, captioner: str) -> list[str]:
        """Return the captioner and all captioners that it starts from; the first one starts from no other.

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
    ExperimentConfig = extend_section("Experiment", ExperimentConfig)


QUERY_BANK = "query_bank"


class SeededModel(Section):
    of: str
    """The definition it was made from."""
    vary: str
    """The other variation in its name, with which the name of its scores ends; empty if there is none."""
    seed: int

    @property
    def system(self) -> str:
        """The name without the seed."""
        return "-".join(filter(None, (self.of, self.vary)))


@dataclass(frozen=True)
class ScoredModels:
    """The models that an experiment scores, by name, and which of them are the same but for their seed."""

    config: ExperimentConfig

    @property
    def captioners(self) -> list[str]:
        return unique(self.config.run.captioners)

    @property
    def retrievers(self) -> list[str]:
        """Retrievers that are shown and scored."""
        return unique(self.config.run.retrievers)

    @property
    def dual_encoders(self) -> list[str]:
        """The dual encoders to embed and score, of the core and of extensions."""
        return unique(name for section in ranked_sections() for name in getattr(self.config.run, section))

    @property
    def polyglots(self) -> list[str]:
        """The dual encoders that read several languages."""
        return [name for name in self.dual_encoders if len(self.config.languages(name)) > 1]

    @property
    def languages(self) -> list[str]:
        """The languages of all dual encoders that read several."""
        return unique(language for name in self.polyglots for language in self.config.languages(name))

    @property
    def ranked(self) -> list[str]:
        """Models whose embeddings are scored and shown.

        A dual encoder of several languages counts with all of them together and with each language.
        """
        return [name for model in self.dual_encoders for name in self._embedded_as(model)]

    @property
    def querybank_scores(self) -> dict[str, str]:
        """The names of the query-bank scores, and for each the name of the model's embeddings."""
        models = unique(self.config.run.query_banks)
        names = [name for model in models for name in self._embedded_as(model)]
        return {f"{name}-{QUERY_BANK}": name for name in names}

    @property
    def scored(self) -> list[str]:
        """The names of all scores computed from embeddings."""
        return [*self.ranked, *self.querybank_scores]

    @property
    def ablations(self) -> list[tuple[str, str]]:
        """Pairs of a whole model and one that lacks a part.

        There is a pair for each language that both read, and one for all languages if they read the same.
        """
        pairs = []
        for whole, models in self.config.run.ablations.items():
            for model in models:
                mine, others = self.by_language(whole), self.by_language(model)
                pairs += [(whole, model)] if mine.keys() == others.keys() else []
                pairs += [(name, others[language]) for language, name in mine.items() if language in others]
        return list(dict.fromkeys(pairs))

    def seeds(self, *sections: str) -> dict[str, SeededModel]:
        """Models that a grid gave a seed, by the names of their scores.

        A name includes the language for one language of several, and ``query_bank`` for scores with a query bank.
        """
        made = {}
        variants = [each for section in sections for each in self.config.variants.get(section, {}).items()]
        for name, variant in variants:
            if isinstance(seed := variant.vary.get("seed"), int):
                others = variant.without("seed").removeprefix(variant.of)
                for scored in self._embedded_as(name):
                    vary = f"{others}{scored.removeprefix(name)}".removeprefix("-")
                    made[scored] = SeededModel(of=variant.of, vary=vary, seed=seed)
        for name, model in self.querybank_scores.items():
            if model in made:
                vary = f"{made[model].vary}-{QUERY_BANK}".removeprefix("-")
                made[name] = made[model].model_copy(update={"vary": vary})
        return made

    @property
    def systems(self) -> dict[str, str]:
        """The system of each scored model that is one seed of it."""
        seeds = self.seeds(*ranked_sections())
        return {name: seeds[name].system for name in self.scored if name in seeds}

    @property
    def seeded(self) -> dict[str, SeededModel]:
        """The models scored that a grid gave seeds of their own."""
        captioners, ranked = self.seeds("captioners"), self.seeds(*ranked_sections())
        made = {name: captioners[name] for name in self.captioners if name in captioners}
        return made | {name: ranked[name] for name in self.scored if name in ranked}

    def _embedded_as(self, model: str) -> list[str]:
        """Return the names of a model's embeddings."""
        return unique([model, *self.by_language(model).values()])

    def by_language(self, model: str) -> dict[str, str]:
        """Return the languages that a model reads, and the name of its embeddings of each."""
        languages = self.config.languages(model)
        return {language: f"{model}-{language}" if len(languages) > 1 else model for language in languages}


def unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
