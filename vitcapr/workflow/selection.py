"""What an experiment asks for by name: the parts of its configuration that are really used, and where they are kept."""

from collections.abc import Iterable
from dataclasses import dataclass

from vitcapr.config.experiment import ExperimentConfig
from vitcapr.config.scored import RANKED, ScoredModels
from vitcapr.workflow.machine import RESULTS
from vitcapr.workflow.names import unique

TRAINED = "trained"
PAIRS = "training.pairs"
"""The setting of a retriever whose values a learning curve runs over."""
TRAIN, VALIDATION, TEST = "train", "validation", "test"
"""Everything is tuned on the second."""


@dataclass(frozen=True)
class Selection(ScoredModels):
    """The names that the rules' wildcards take."""

    config: ExperimentConfig

    @property
    def name(self) -> str:
        return self.config.experiment

    @property
    def root(self) -> str:
        return f"{RESULTS}/{self.name}"

    @property
    def trained_captioners(self) -> list[str]:
        """Those that are shown, and those that they start from, which come first."""
        return unique(name for wanted in self.captioners for name in self.config.line_of(wanted))

    @property
    def decodings(self) -> list[str]:
        """Those whose captions are shown and scored."""
        return unique(self.config.run.decodings)

    @property
    def rerankings(self) -> list[str]:
        return unique(self.config.run.rerankings)

    @property
    def retriever_rerankings(self) -> list[str]:
        """All but the oracles."""
        return [name for name in self.rerankings if self.config.rerankings[name].by == "retriever"]

    @property
    def tuned_rerankings(self) -> list[str]:
        """Those whose weight is chosen on the validation split."""
        return [name for name in self.retriever_rerankings if self.config.rerankings[name].weight is None]

    @property
    def oracles(self) -> list[str]:
        return [name for name in self.rerankings if self.config.rerankings[name].by == "oracle"]

    @property
    def needed_decodings(self) -> list[str]:
        """Those that are shown, and those that are reranked."""
        return unique([*self.decodings, *(self.config.rerankings[name].decoding for name in self.rerankings)])

    @property
    def ways(self) -> list[str]:
        """All that captions come from: decodings, then rerankings."""
        return [*self.decodings, *self.rerankings]

    @property
    def compared(self) -> dict[str, dict[str, str]]:
        """By language, the models that are drawn beside one another, and the names that their embeddings have there."""
        found: dict[str, dict[str, str]] = {}
        for name in self.drawn(unique(self.config.run.compared), *RANKED):
            spoken = self._spoken(name)
            for language in spoken:
                found.setdefault(language, {})[name] = f"{name}-{language}" if len(spoken) > 1 else name
        return found

    def _spoken(self, model: str) -> list[str]:
        """The languages of the captions that a retriever or matcher embeds."""
        return self.config.matchers[model].languages if model in self.matchers else [self.config.text.language]

    def is_on_a_curve(self, retriever: str) -> bool:
        """Whether a grid varied its number of training pairs."""
        variant = self.config.variants.get("retrievers", {}).get(retriever)
        return variant is not None and PAIRS in variant.vary

    @property
    def pair_families(self) -> dict[str, list[str]]:
        """The shown retrievers of each definition of which a grid varied the number of training pairs."""
        made = self.config.variants.get("retrievers", {})
        varied = {variant.of for variant in made.values() if PAIRS in variant.vary}
        families: dict[str, list[str]] = {}
        for name in self.retrievers:
            family = made[name].of if name in made else name
            if family in varied:
                families.setdefault(family, []).append(name)
        return families

    @property
    def needed_retrievers(self) -> list[str]:
        """Those that are shown, and those that rerank."""
        reranking = (self.config.rerankings[name].retriever for name in self.rerankings)
        return unique([*self.retrievers, *(name for name in reranking if name is not None)])

    @property
    def needed_matchers(self) -> list[str]:
        """Those that are scored, and those whose losses are drawn."""
        return unique([*self.matchers, *(name for names in self.config.run.losses.values() for name in names)])

    def embeddings(self, model: str, split: str) -> str:
        """The embeddings of a split by a model, or by a matcher in one language."""
        return f"{self.root}/embeddings/{model}/{split}/embeddings.npz"

    @property
    def languages(self) -> list[str]:
        """Those that matchers read."""
        return unique(language for name in self.matchers for language in self.config.matchers[name].languages)

    @property
    def tokenizers(self) -> list[str]:
        """Those that a wanted matcher reads with."""
        texts = (text for name in self.needed_matchers for text in self.config.matchers[name].text.values())
        return unique(text.tokenizer for text in texts if text.tokenizer is not None)

    @property
    def pixel_backbones(self) -> list[str]:
        """Those that are trained further, on decoded pictures."""
        return unique(self.config.matchers[name].image.backbone for name in self.needed_matchers)

    def drawn(self, names: Iterable[str], *kinds: str) -> list[str]:
        """Of models that differ in their seed alone only the first; the others stand in the tables.

        Args:
            kinds: the sections of the configuration that ``names`` are of.
        """
        made = self.variants(*kinds)
        first: dict[str, str] = {}
        for name in names:
            first.setdefault(made[name].without("seed") if name in made else name, name)
        return list(first.values())

    @property
    def drawn_retrievers(self) -> list[str]:
        """Those whose training is drawn: one of every seed, and none that has nothing to learn."""
        drawn = self.drawn(self.needed_retrievers, "retrievers")
        return [name for name in drawn if self.config.retrievers[name].learns]

    @property
    def splits(self) -> list[str]:
        return unique(self.config.run.splits)

    @property
    def needed_splits(self) -> list[str]:
        """Those that are shown, the one things are tuned on, that query banks are of, and that pools are of."""
        tuned = [VALIDATION] if self.tuned_rerankings or self.banked else []
        learnt, pooled = [TRAIN] if self.banked else [], [TEST] if self.config.run.pools else []
        return unique([*self.splits, *tuned, *learnt, *pooled])

    @property
    def backbones(self) -> list[str]:
        """Those that a wanted model looks through."""
        captioners = (self.config.captioners[name].backbone for name in self.trained_captioners)
        retrievers = (
            backbone
            for name in self.needed_retrievers
            for backbone in (self.config.retrievers[name].backbone, *self.config.retrievers[name].views)
        )
        return unique([*captioners, *retrievers])

    @property
    def word_vectors(self) -> list[str]:
        """Those that a wanted model starts from."""
        captioners = (self.config.captioners[name].word_vectors for name in self.trained_captioners)
        retrievers = (self.config.retrievers[name].text.word_vectors for name in self.needed_retrievers)
        return unique(name for name in [*captioners, *retrievers] if name is not None)

    @property
    def text_encoders(self) -> list[str]:
        """Those whose features a wanted retriever reads."""
        wanted = (self.config.retrievers[name].text.encoder for name in self.needed_retrievers)
        return unique(name for name in wanted if name is not None)

    @property
    def attentive_captioners(self) -> list[str]:
        return [name for name in self.captioners if self.config.captioners[name].attends]

    @property
    def attentive_decodings(self) -> list[str]:
        """Of those that are shown."""
        return [name for name in self.decodings if self.config.decodings[name].attention]

    @property
    def has_objects(self) -> bool:
        """Whether the data set says which object is where."""
        return self.config.data.dataset == "scenes"

    @property
    def checks_claims(self) -> bool:
        """Whether the captions can be checked claim by claim."""
        return self.has_objects and self.config.text.language == "en"

    def is_trained(self, backbone: str) -> bool:
        return self.config.backbones[backbone].source == TRAINED

    @property
    def trains_backbone(self) -> bool:
        return any(self.is_trained(name) for name in [*self.backbones, *self.pixel_backbones])
