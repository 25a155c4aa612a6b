"""The complete configuration of an experiment, as config.yaml holds it."""

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Literal, Self

from pydantic import Field, model_validator

from vitcapr.config.base import Section
from vitcapr.config.captioner import CaptionerConfig
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
    """The definitions that the workflow runs."""

    captioners: list[str] = ["attention"]
    """Captioners to train and decode. If empty, decodings and rerankings must be empty too."""
    decodings: list[str] = ["greedy", "beam"]
    rerankings: list[str] = []
    """Rerankings of the captions of every captioner."""
    retrievers: list[str] = []
    compared: list[str] = []
    """Retrievers and fine-tuned dual encoders to compare side by side, per language: their first results and
    their embedding spaces."""
    ablations: dict[str, list[str]] = {}
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
    backbones: dict[Name, BackboneConfig] = {"vit": BackboneConfig(source="trained")}
    trained_backbone: TrainedBackboneConfig = TrainedBackboneConfig()
    features: FeaturesConfig = FeaturesConfig()
    pixels: PixelsConfig = PixelsConfig()
    tags: TagsConfig = TagsConfig()
    captioners: dict[CaptionerName, CaptionerConfig] = {"attention": CaptionerConfig(backbone="vit")}
    decodings: dict[Name, DecodingConfig] = {"greedy": DecodingConfig(beam_size=1), "beam": DecodingConfig()}
    text_encoders: dict[Name, TextEncoderConfig] = {}
    retrievers: dict[ModelName, RetrieverConfig] = {}
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

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        run = self.run
        _check("run.captioners", run.captioners, self.captioners)
        _check("run.decodings", run.decodings, self.decodings)
        _check("run.rerankings", run.rerankings, self.rerankings)
        _check("run.retrievers", run.retrievers, self.retrievers)
        for name in (ancestor for wanted in run.captioners for ancestor in self.line_of(wanted)):
            captioner = self.captioners[name]
            _check(f"captioners.{name}.backbone", [captioner.backbone], self.backbones)
            self._check_not_mirrored(f"captioners.{name}.backbone", captioner.backbone)
            _check(f"captioners.{name}.word_vectors", _given(captioner.word_vectors), self.word_vectors)
        for name in run.rerankings:
            reranking = self.rerankings[name]
            _check(f"rerankings.{name}.decoding", [reranking.decoding], self.decodings)
            _check(f"rerankings.{name}.retriever", _given(reranking.retriever), self.retrievers)
        for name in [*run.retrievers, *_given(*(self.rerankings[name].retriever for name in run.rerankings))]:
            retriever = self.retrievers[name]
            _check(f"retrievers.{name}.backbone", [retriever.backbone], self.backbones)
            _check(f"retrievers.{name}.augmented_views", retriever.augmented_views, self.backbones)
            for view in retriever.augmented_views:
                if not self.backbones[view].same_network(self.backbones[retriever.backbone]):
                    raise ValueError(
                        f"retrievers.{name}.augmented_views: '{view}' does not use the network and size of "
                        f"'{retriever.backbone}'"
                    )
            _check(f"retrievers.{name}.text.encoder", _given(retriever.text.encoder), self.text_encoders)
            _check(f"retrievers.{name}.text.word_vectors", _given(retriever.text.word_vectors), self.word_vectors)
        return self

    @model_validator(mode="after")
    def _compared_models_are_scored(self) -> Self:
        scored = [*self.run.retrievers, *self.run.finetuned_dual_encoders]
        _check("run.compared", self.run.compared, scored)
        _check("run.query_banks", self.run.query_banks, scored)
        for whole, models in self.run.ablations.items():
            _check("run.ablations", [whole], scored)
            _check(f"run.ablations.{whole}", models, scored)
            if any(self._languages_of(model) != self._languages_of(whole) for model in models):
                raise ValueError(f"run.ablations.{whole}: all models must read the same languages in the same order")
        return self

    @model_validator(mode="after")
    def _finetuned_stand_apart(self) -> Self:
        _check("run.finetuned_dual_encoders", self.run.finetuned_dual_encoders, self.finetuned_dual_encoders)
        for figure, names in self.run.loss_curves.items():
            _check(f"run.loss_curves.{figure}", names, self.finetuned_dual_encoders)
        for name in [
            *self.run.finetuned_dual_encoders,
            *(name for names in self.run.loss_curves.values() for name in names),
        ]:
            finetuned = self.finetuned_dual_encoders[name]
            if name in self.retrievers:
                raise ValueError(f"'{name}' is both a retriever and a fine-tuned dual encoder; rename one of them")
            _check(f"finetuned_dual_encoders.{name}.image.backbone", [finetuned.image.backbone], self.backbones)
            self._check_not_mirrored(f"finetuned_dual_encoders.{name}.image.backbone", finetuned.image.backbone)
            for tower, text in finetuned.text.items():
                _check(
                    f"finetuned_dual_encoders.{name}.text.{tower}.tokenizer", _given(text.tokenizer), self.tokenizers
                )
        return self

    @model_validator(mode="after")
    def _derived_names_stand_apart(self) -> Self:
        """Embeddings, query-bank scores and logs of a model have derived names. All of them must differ."""
        found = [*self.retrievers, *self.finetuned_dual_encoders]
        for finetuned, config in self.finetuned_dual_encoders.items():
            if len(config.languages) > 1:
                found += [f"{finetuned}-{language}" for language in config.languages]
        found += [f"{name}-query_bank" for name in list(found)]
        _check_distinct("retrievers and finetuned_dual_encoders", found)
        ways = [*self.run.decodings, *self.run.rerankings]
        _check_distinct("run", [f"{captioner}.{way}" for captioner in set(self.run.captioners) for way in set(ways)])
        return self

    @model_validator(mode="after")
    def _pools_are_of_pairs(self) -> Self:
        if self.run.pools and self.data.dataset != "pairs":
            raise ValueError(f"run.pools: the data set {self.data.dataset} has no held-out queries; use pairs")
        return self

    @model_validator(mode="after")
    def _captioners_write_something(self) -> Self:
        run = self.run
        if run.captioners and not run.decodings:
            raise ValueError("run.decodings is empty, but run.captioners is not")
        if not run.captioners and (run.decodings or run.rerankings):
            idle = "decodings" if run.decodings else "rerankings"
            raise ValueError(f"run.{idle} needs a captioner; empty it, or list one in run.captioners")
        if not (run.captioners or run.retrievers or run.finetuned_dual_encoders or run.loss_curves):
            raise ValueError("run lists no captioners, retrievers or finetuned_dual_encoders")
        return self

    def _languages_of(self, model: str) -> list[str]:
        finetuned = self.finetuned_dual_encoders.get(model)
        return [self.text.language] if finetuned is None else finetuned.languages

    def _check_not_mirrored(self, key: str, backbone: str) -> None:
        if self.backbones[backbone].mirror:
            raise ValueError(f"{key}: '{backbone}' mirrors its pictures; only augmented_views of a retriever may do so")

    def line_of(self, captioner: str) -> list[str]:
        """The captioner and all captioners that it starts from; the first one starts from no other.

        Raises:
            ValueError: a captioner is not defined, or it starts from itself.
        """
        line = [captioner]
        while (start := self.captioners[line[0]].start_from) is not None:
            _check(f"captioners.{line[0]}.start_from", [start], self.captioners)
            if self.captioners[start].backbone != self.captioners[line[0]].backbone:
                raise ValueError(f"captioners.{line[0]} starts from '{start}', which uses another backbone")
            if start in line:
                raise ValueError(f"captioners.{start} starts from itself")
            line.insert(0, start)
        return line

    @model_validator(mode="after")
    def _rerankings_have_a_choice(self) -> Self:
        for name in self.run.rerankings:
            reranking = self.rerankings[name]
            if name in self.decodings:
                raise ValueError(f"'{name}' is both a decoding and a reranking; rename one of them")
            if reranking.by == "oracle" and "oracle" not in name:
                raise ValueError(f"the reranking '{name}' uses an oracle; its name must contain 'oracle'")
            if self.decodings[reranking.decoding].n_best < 2:
                raise ValueError(
                    f"rerankings.{name} reorders the candidates of '{reranking.decoding}', which stores only one; "
                    f"set decodings.{reranking.decoding}.n_best"
                )
        return self

    @model_validator(mode="after")
    def _batches_fill_chunks(self) -> Self:
        if self.features.chunk % self.features.batch:
            raise ValueError(
                f"features.batch {self.features.batch} does not divide features.chunk {self.features.chunk}"
            )
        return self


def _given(*names: str | None) -> list[str]:
    return [name for name in names if name is not None]


def _check(key: str, names: Iterable[str], defined: Collection[str]) -> None:
    """Raises:
    ValueError: a name is not defined.
    """
    for name in names:
        if name not in defined:
            raise ValueError(f"{key} names '{name}', which is not defined; defined: {sorted(defined)}")


def _check_distinct(key: str, names: Iterable[str]) -> None:
    """Raises:
    ValueError: two things have the same name, so their files would collide.
    """
    twice = [name for name, number in Counter(names).items() if number > 1]
    if twice:
        raise ValueError(f"{key}: two things have the name '{twice[0]}'; rename one of them")
