"""Train a captioner on a feature store."""

from typing import Any, Self

from pydantic import Field

from vitcapr.config.base import StageSettings
from vitcapr.config.captioner import AnyCaptionerConfig
from vitcapr.formats.kinds import (
    FeaturesFile,
    ManifestFile,
    ModelFolder,
    TokensFile,
    TrainingFolder,
    VocabularyFile,
    WordVectorsFile,
)
from vitcapr.pipeline.stage import CodeHash, In, Out, stage
from vitcapr.progress import Reporter


class TrainCaptionerSettings(StageSettings):
    captioner: AnyCaptionerConfig
    seed: int = Field(0, ge=0)
    """The seed of the captioner, or that of the experiment if the captioner sets none."""

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> Self:
        captioner = config.captioners[wildcards.captioner]
        return cls(captioner=captioner, seed=captioner.seed_in(config.seed))


@stage(
    cached=True,
    device="captioner.training.device",
    processes="captioner.training.processes",
    execution_only={"captioner.training.save_every_steps"},
)
def train_captioner(
    features: In[FeaturesFile],
    manifest: In[ManifestFile],
    vocabulary: In[VocabularyFile],
    tokens: In[TokensFile],
    settings: TrainCaptionerSettings,
    report: Reporter,
    code: CodeHash,
    captioner: Out[TrainingFolder],
    word_vectors: In[WordVectorsFile] | None = None,
    start: In[ModelFolder] | None = None,
) -> None:
    """Train a captioner. After an interruption by a signal, the same command continues with bit-identical results."""
    import torch

    from vitcapr.encoders.precision import dtype_name, resolve_device, resolve_dtype
    from vitcapr.files import sha256_bytes, sha256_file
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.model import WEIGHTS
    from vitcapr.formats.tokens import TokenTable
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.models.captioners import build_captioner
    from vitcapr.store.reader import open_features
    from vitcapr.training.captioner import CaptionerTask, history_with_rewards, start_from
    from vitcapr.training.outcome import train_into
    from vitcapr.training.word_vectors import start_embedding

    config, training = settings.captioner, settings.captioner.training
    device = resolve_device(training.device)
    dtype = resolve_dtype(training.precision, device)
    images, store = read_manifest(manifest), open_features(features).at_layer(config.layer)
    words = Vocabulary.read(vocabulary)
    table = TokenTable.read(tokens, images, words)
    inputs = {
        "features": store.fingerprint,
        "tokens": sha256_file(tokens),
        "vocabulary": sha256_file(vocabulary),
        "word_vectors": None if word_vectors is None else sha256_file(word_vectors),
        "start_from": None if start is None else sha256_file(start / WEIGHTS),
        "images": sha256_bytes("\n".join(images.images["split"]).encode()),
    }
    architecture = {
        "kind": config.architecture,
        "vocabulary": len(words),
        "feature_dim": store["cls"].shape[-1],
        **config.arguments(),
    }
    seed = config.seed_in(settings.seed)
    torch.manual_seed(seed)
    model = build_captioner(architecture)
    if word_vectors is not None:
        start_embedding(model.embedding, word_vectors, "the captioner's embedding_dim")
    if start is not None:
        start_from(model, architecture, start)
    task = CaptionerTask(
        model,
        store,
        table,
        training,
        train=images.rows("train"),
        validation=images.rows("validation"),
        seed=seed,
        device=device,
        vocabulary=words,
    )
    report.line(
        f"{config.architecture}: {sum(p.numel() for p in model.parameters()):,} weights, "
        f"{len(words):,} words, {dtype_name(dtype)} on {device}"
    )
    train_into(
        captioner,
        lambda: task,
        training,
        card={
            "architecture": architecture,
            "backbone": config.backbone,
            "code": code,
            "inputs": inputs,
            "settings": settings.canonical(),
        },
        device=device,
        dtype=dtype,
        reporter=report,
        rows=lambda history: history_with_rewards(history, training.phases),
    )
