"""Train a retriever, a dual encoder of images and captions, on feature stores."""

from typing import Any, Self

from pydantic import Field

from vitcapr.config.base import StageSettings
from vitcapr.config.retriever import RetrieverConfig
from vitcapr.errors import UserError
from vitcapr.formats.kinds import (
    FeaturesFile,
    ManifestFile,
    RetrieverTrainingFolder,
    TextFeaturesFile,
    TokensFile,
    VocabularyFile,
    WordVectorsFile,
)
from vitcapr.pipeline.stage import CodeHash, In, Out, stage
from vitcapr.progress import Reporter


class TrainRetrieverSettings(StageSettings):
    retriever: RetrieverConfig
    seed: int = Field(0, ge=0)
    """The seed of the retriever, or that of the experiment if the retriever sets none."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        retriever = config.retrievers[wildcards.retriever]
        return cls(retriever=retriever, seed=retriever.seed_in(config.seed))


@stage(
    cached=True,
    device="retriever.training.device",
    processes="retriever.training.processes",
    execution_only={"retriever.training.save_every_steps"},
)
def train_retriever(
    features: In[FeaturesFile],
    manifest: In[ManifestFile],
    vocabulary: In[VocabularyFile],
    tokens: In[TokensFile],
    settings: TrainRetrieverSettings,
    report: Reporter,
    code: CodeHash,
    retriever: Out[RetrieverTrainingFolder],
    augmented_views: list[In[FeaturesFile]] | None = None,
    text_features: In[TextFeaturesFile] | None = None,
    word_vectors: In[WordVectorsFile] | None = None,
) -> None:
    """Train a retriever. After an interruption by a signal, the same command continues with bit-identical results."""
    from vitcapr.batches.pairs import draw_pairs
    from vitcapr.files import sha256_bytes, sha256_file
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.tokens import TokenTable
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.models.dual_encoder import DualEncoder
    from vitcapr.retrieval.augmented_views import open_augmented_views
    from vitcapr.training.retriever import (
        architecture_of,
        describe_text_encoder,
        open_text_features,
        texts_of,
        train_dual_encoder,
    )
    from vitcapr.training.word_vectors import start_embedding

    wanted, training = settings.retriever, settings.retriever.training
    data = read_manifest(manifest)
    stores = open_augmented_views(data, wanted.augmented_views, features, augmented_views, wanted.layer)
    store = stores[0]
    words = Vocabulary.read(vocabulary)
    table = TokenTable.read(tokens, data, words)
    sentences = open_text_features(text_features, data, wanted)
    inputs = {
        "features": store.fingerprint,
        "augmented_views": [further.fingerprint for further in stores[1:]],
        "tokens": sha256_file(tokens),
        "vocabulary": sha256_file(vocabulary),
        "text_features": None if sentences is None else sentences.fingerprint,
        "word_vectors": None if word_vectors is None else sha256_file(word_vectors),
        "images": sha256_bytes("\n".join(data.images["split"]).encode()),
    }
    if training.pairs is not None:
        table = table.select(draw_pairs(table.image_row, data.rows("train"), training.pairs, training.pairs_seed))
    text_dim = None if sentences is None else sentences["text"].shape[-1]
    architecture = architecture_of(wanted, store["cls"].shape[-1], text_dim=text_dim, vocabulary=len(words))

    def begin(encoder: DualEncoder) -> None:
        if word_vectors is None:
            return
        if encoder.text.embedding is None:
            raise UserError("a text tower of kind features has no word embedding", remedy="omit --word-vectors")
        start_embedding(encoder.text.embedding, word_vectors, "the retriever's text.word_dim")

    train_dual_encoder(
        retriever,
        wanted,
        architecture,
        stores,
        texts_of(wanted.text, table, sentences),
        train=data.rows("train"),
        validation=data.rows("validation"),
        seed=wanted.seed_in(settings.seed),
        card={
            "backbone": wanted.backbone,
            "code": code,
            "inputs": inputs,
            "settings": settings.canonical(),
            "text_encoder": None if sentences is None else describe_text_encoder(sentences),
        },
        reporter=report,
        begin=begin,
    )
