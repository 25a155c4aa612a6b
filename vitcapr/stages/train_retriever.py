from vitcapr.config.dual_encoder import RetrieverConfig
from vitcapr.config.training import TrainedSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import CodeHash, Device, In, Out, stage
from vitcapr.progress import Reporter


class TrainRetrieverSettings(TrainedSettings):
    retriever: RetrieverConfig


@stage(
    cached=True,
    processes="retriever.training.processes",
)
def train_retriever(
    features: In[kinds.FeaturesFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    tokens: In[kinds.TokensFile],
    settings: TrainRetrieverSettings,
    report: Reporter,
    code: CodeHash,
    retriever: Out[kinds.RetrieverTrainingFolder],
    augmented_views: list[In[kinds.FeaturesFile]] | None = None,
    text_features: In[kinds.TextFeaturesFile] | None = None,
    word_vectors: In[kinds.WordVectorsFile] | None = None,
    device: Device = "auto",
) -> None:
    """Train a retriever, a dual encoder on feature stores.

    After an interruption by a signal, the same command continues with bit-identical results.
    """
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.tokens import TokenTable
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.retrieval.embedder import open_augmented_views
    from vitcapr.training.outcome import TrainingJob, digests
    from vitcapr.training.retriever import RetrieverTexts, open_text_features, train_retriever

    config, data, words = settings.retriever, read_manifest(manifest), Vocabulary.read(vocabulary)
    stores = open_augmented_views(data, config.augmented_views, features, augmented_views, config.layer)
    sentences = open_text_features(text_features, data, config)
    table = TokenTable.read(tokens, data, words)
    first, *views = [store.fingerprint for store in stores]
    inputs = {"features": first, "augmented_views": views, "text_features": sentences and sentences.fingerprint}
    inputs |= digests(data, tokens=tokens, vocabulary=vocabulary, word_vectors=word_vectors)
    card = {"code": code, "inputs": inputs, "settings": settings.canonical()}
    job = TrainingJob(retriever, card, settings.seed, resolve_device(device), report)
    train_retriever(job, config, data, stores, RetrieverTexts(table, words, sentences), word_vectors)
