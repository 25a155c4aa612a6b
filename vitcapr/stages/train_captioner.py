from vitcapr.config.experiment import AnyCaptionerConfig
from vitcapr.config.training import TrainedSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import CodeHash, Device, In, Out, stage
from vitcapr.progress import Reporter


class TrainCaptionerSettings(TrainedSettings):
    captioner: AnyCaptionerConfig


@stage(
    cached=True,
    processes="captioner.training.processes",
)
def train_captioner(
    features: In[kinds.FeaturesFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    tokens: In[kinds.TokensFile],
    settings: TrainCaptionerSettings,
    report: Reporter,
    code: CodeHash,
    captioner: Out[kinds.TrainingFolder],
    word_vectors: In[kinds.WordVectorsFile] | None = None,
    start: In[kinds.ModelFolder] | None = None,
    device: Device = "auto",
) -> None:
    """Train a captioner. After an interruption by a signal, the same command continues with bit-identical results."""
    from vitcapr.encoders.devices import resolve_device
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.tokens import TokenTable
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.store.reader import open_features
    from vitcapr.training.captioner_task import train_captioner
    from vitcapr.training.outcome import TrainingJob, digests

    config, data, words = settings.captioner, read_manifest(manifest), Vocabulary.read(vocabulary)
    store, table = open_features(features).at_layer(config.layer), TokenTable.read(tokens, data, words)
    files = {"tokens": tokens, "vocabulary": vocabulary, "word_vectors": word_vectors, "start_from": start}
    inputs = {"features": store.fingerprint, **digests(data, **files)}
    card = {"code": code, "inputs": inputs, "settings": settings.canonical()}
    job = TrainingJob(captioner, card, settings.seed, resolve_device(device), report)
    train_captioner(job, config, data, store, words, table, word_vectors=word_vectors, start=start)
