"""The files of captioners: what they read, their captions and scores."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from vitcapr.config.captioner import RerankingConfig
from vitcapr.config.dual_encoder import RetrieverConfig
from vitcapr.experiment.features import NO_GRID, Features
from vitcapr.experiment.models import Part
from vitcapr.formats.kinds import MODEL_FILES
from vitcapr.loader import ask
from vitcapr.pipeline.rule import Wildcards


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
        names = [f"{captioner}/{source}" for captioner in captioners for source in sources]
        return {name: f"{self.root}/captions/{name}/{{split}}/captions.json" for name in names}

    def claims(self, captions: Mapping[str, str]) -> dict[str, str]:
        """Return the claims of captions beside the captions, where an extension checks them."""
        checked = any(ask("checks_claims", self.config))
        return {name: path.replace("captions.json", "claims.json") for name, path in captions.items() if checked}

    def vocabulary(self, wildcards: Wildcards) -> str:
        """Return the words of a captioner, or the pieces of its language model."""
        has_pieces = hasattr(self.config.captioners[wildcards.captioner], "language_model")
        return f"{self.root}/text/{f'pieces/{wildcards.captioner}/' if has_pieces else ''}vocabulary.json"

    def tokens(self, wildcards: Wildcards) -> str:
        return self.vocabulary(wildcards).replace("vocabulary.json", "tokens.npz")

    def start(self, wildcards: Wildcards) -> list[str]:
        """Return the captioner that training starts from."""
        name = self.config.captioners[wildcards.captioner].start_from
        return [] if name is None else [f"{self.root}/captioners/{name}/{file}" for file in MODEL_FILES]

    def candidates(self, wildcards: Wildcards, split: str | None = None) -> str:
        """Return the captions that a reranking reorders, of the job's split or of another one."""
        source = self._reranking(wildcards).decoding
        return f"{self.root}/captions/{wildcards.captioner}/{source}/{split or wildcards.split}/captions.json"

    def reranking_weight(self, wildcards: Wildcards) -> list[str]:
        """Return the weight selected on the validation split; none if it is fixed."""
        folder = f"{self.root}/reranking/{wildcards.captioner}/{wildcards.reranking}"
        return [f"{folder}/weight.json"] if self._reranking(wildcards).weight is None else []

    def reranking_retriever(self, wildcards: Wildcards) -> list[str]:
        return [f"{self.root}/retrievers/{self._reranking(wildcards).retriever}/{file}" for file in MODEL_FILES]

    def paraphrases(self, wildcards: Wildcards) -> list[str]:
        """METEOR's paraphrases of the split."""
        folder = f"{self.root}/text/paraphrases/{wildcards.split}"
        metrics = self.config.metrics.caption_in(self.config.text.language)
        return [f"{folder}/card.json", f"{folder}/table.gz"] if "meteor" in metrics else []

    def compared(self, file: str) -> Callable[[Wildcards], str]:
        """Return a file of the scores that a comparison starts from."""

        def path(wildcards: Wildcards) -> str:
            captioner, source = wildcards.captioner, wildcards.decoding
            if source in self.models.rerankings:
                source = self.config.rerankings[source].decoding
            else:
                captioner = self.config.captioners[captioner].start_from
            return f"{self.root}/metrics/{captioner}/{source}/{wildcards.split}/{file}"

        return path

    def checked_claims(self, wildcards: Wildcards) -> list[str]:
        """List the claims of the captions of a comparison, where they are checked."""
        files = self.claims({"": "{root}/captions/{captioner}/{decoding}/{split}/captions.json"})
        return [path.format(root=self.root, **wildcards) for path in files.values()]

    def compared_claims(self, wildcards: Wildcards) -> list[str]:
        """List the claims of the captions that a comparison starts from."""
        folder = self.compared("claims.json")(wildcards).replace("/metrics/", "/captions/", 1)
        return [folder] if self.checked_claims(wildcards) else []

    def _reranking(self, wildcards: Wildcards) -> RerankingConfig:
        return self.config.rerankings[wildcards.reranking]

    def caption_files(self, folder: str, file: str) -> list[str]:
        """``file`` under ``folder`` for every captioner, decoding or reranking, and split."""
        return [
            f"{self.root}/{folder}/{captioner}/{source}/{split}/{file}"
            for captioner in self.models.captioners
            for source in self.models.caption_sources
            for split in self.models.splits
        ]

    def features(self, job: Wildcards) -> str:
        """Return the features that a captioner reads."""
        return self.stores.sealed(self.config.captioners[job.captioner].backbone)

    def word_vectors(self, job: Wildcards) -> list[str]:
        """Return the word vectors that initialise a captioner."""
        name = getattr(self.config.captioners[job.captioner], "word_vectors", None)
        return [] if name is None else [f"{self.root}/text/word_vectors/{name}/vectors.npy"]

    def reranker(self, job: Wildcards) -> RetrieverConfig:
        """Return the retriever of a reranking that has one."""
        return self.config.retrievers[str(self._reranking(job).retriever)]
