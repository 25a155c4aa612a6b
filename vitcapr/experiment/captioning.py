"""The files of captioners: what they read, their captions and scores."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from vitcapr.config.captioner import RerankingConfig
from vitcapr.config.dual_encoder import RetrieverConfig
from vitcapr.experiment import paths
from vitcapr.experiment.models import Part
from vitcapr.experiment.rule import Wildcards
from vitcapr.experiment.stores import NO_GRID, Features
from vitcapr.formats.kinds import MODEL_FILES
from vitcapr.loader import ask


@dataclass(frozen=True)
class Captioning(Part):
    """Captioners, decodings and rerankings."""

    stores: Features

    @property
    def attentive_captioners(self) -> list[str]:
        """The captioners whose attention has a place in the picture."""
        captioners = {name: self.config.captioners[name] for name in self.models.captioners}
        seen = {name: each for name, each in captioners.items() if each.attends}
        return [name for name, each in seen.items() if self.stores.stored[each.backbone].grid != NO_GRID]

    @property
    def attention(self) -> list[dict[str, str]]:
        """The captions with stored attention, as wildcards."""
        return [
            {"captioner": captioner, "decoding": decoding, "split": split}
            for captioner in self.attentive_captioners
            for decoding in self.models.attentive_decodings
            for split in self.models.splits
        ]

    def captions(self, decodings: Iterable[str] | None = None) -> dict[str, str]:
        """Return the captions of every captioner by decoding and reranking, by name, with the wildcard ``split``.

        The default decodings are those of ``run``.
        """
        sources = [*(self.models.decodings if decodings is None else decodings), *self.models.rerankings]
        captioners = self.models.representatives(self.models.captioners, "captioners")
        return {
            f"{captioner}/{source}": self.path(paths.CAPTIONS, captioner=captioner, decoding=source)
            for captioner, source in product(captioners, sources)
        }

    def claims(self, captions: Mapping[str, str]) -> dict[str, str]:
        """Return the claims of captions beside the captions, where an extension checks them."""
        checked = any(ask("checks_claims", self.config))
        return {name: str(Path(path).with_name("claims.json")) for name, path in captions.items() if checked}

    def vocabulary(self, wildcards: Wildcards) -> str:
        """Return the words that a captioner writes."""
        return f"{self._words(wildcards)}/vocabulary.json"

    def tokens(self, wildcards: Wildcards) -> str:
        """Return the captions in the numbers of these words."""
        return f"{self._words(wildcards)}/tokens.npz"

    def _words(self, wildcards: Wildcards) -> str:
        folder = self.config.captioners[wildcards.captioner].words
        return self.path(f"{paths.ROOT}/{folder}", captioner=wildcards.captioner)

    def start(self, wildcards: Wildcards) -> list[str]:
        """Return the captioner that training starts from."""
        name = self.config.captioners[wildcards.captioner].start_from
        folder = self.path(paths.CAPTIONER, captioner=name)
        return [] if name is None else [f"{folder}/{file}" for file in MODEL_FILES]

    def candidates(self, wildcards: Wildcards, split: str | None = None) -> str:
        """Return the captions that a reranking reorders, of the job's split or of another one."""
        source = self._reranking(wildcards).decoding
        split = split or wildcards.split
        return self.path(paths.CAPTIONS, captioner=wildcards.captioner, decoding=source, split=split)

    def reranking_weight(self, wildcards: Wildcards) -> list[str]:
        """Return the weight selected on the validation split; none if it is fixed."""
        tuned = self._reranking(wildcards).weight is None
        return [self.path(paths.RERANKING_WEIGHT, **wildcards)] if tuned else []

    def reranking_retriever(self, wildcards: Wildcards) -> list[str]:
        folder = self.path(paths.RETRIEVER, retriever=self._reranking(wildcards).retriever)
        return [f"{folder}/{file}" for file in MODEL_FILES]

    def paraphrases(self, wildcards: Wildcards) -> list[str]:
        """METEOR's paraphrases of the split."""
        folder = self.path(paths.PARAPHRASES, split=wildcards.split)
        metrics = self.config.metrics.caption_in(self.config.text.language)
        return [f"{folder}/card.json", f"{folder}/table.gz"] if "meteor" in metrics else []

    def compared(self, wildcards: Wildcards, pattern: str) -> str:
        """Return a file of the captions that a comparison starts from."""
        captioner, source = wildcards.captioner, wildcards.decoding
        if source in self.models.rerankings:
            source = self.config.rerankings[source].decoding
        else:
            captioner = self.config.captioners[captioner].start_from
        return self.path(pattern, captioner=captioner, decoding=source, split=wildcards.split)

    def checked_claims(self, wildcards: Wildcards) -> list[str]:
        """List the claims of the captions of a comparison, where they are checked."""
        return list(self.claims({"": self.path(paths.CAPTIONS, **wildcards)}).values())

    def compared_claims(self, wildcards: Wildcards) -> list[str]:
        """List the claims of the captions that a comparison starts from."""
        return list(self.claims({"": self.compared(wildcards, paths.CAPTIONS)}).values())

    def _reranking(self, wildcards: Wildcards) -> RerankingConfig:
        return self.config.rerankings[wildcards.reranking]

    def caption_files(self, pattern: str) -> list[str]:
        """Return a file for every captioner, decoding or reranking, and split."""
        models = self.models
        return self.every(pattern, captioner=models.captioners, decoding=models.caption_sources, split=models.splits)

    def features(self, job: Wildcards) -> str:
        """Return the features that a captioner reads."""
        return self.stores.sealed(self.config.captioners[job.captioner].backbone)

    def word_vectors(self, job: Wildcards) -> list[str]:
        """Return the word vectors that initialise a captioner."""
        name = getattr(self.config.captioners[job.captioner], "word_vectors", None)
        return [] if name is None else [self.path(paths.WORD_VECTORS, vectors=name)]

    def reranker(self, job: Wildcards) -> RetrieverConfig:
        """Return the retriever of a reranking that has one."""
        return self.config.retrievers[str(self._reranking(job).retriever)]
