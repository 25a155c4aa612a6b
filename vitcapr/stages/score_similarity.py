"""Scores of captions by the vectors of frozen encoders."""

from typing import Any, Literal

from vitcapr.config.base import StageSettings
from vitcapr.config.features import TextEncoderConfig
from vitcapr.config.metrics import MetricsConfig
from vitcapr.formats.kinds import CaptionsFile, FeaturesFile, ManifestFile, MetricsFile
from vitcapr.pipeline.stage import DecodingName, In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


class SimilaritySettings(StageSettings):
    metrics: MetricsConfig = MetricsConfig()
    clip: TextEncoderConfig | None = None
    """The text half of the model whose image half made the features."""
    sentences: TextEncoderConfig | None = None
    bert: TextEncoderConfig | None = None
    """The encoder of BERTScore."""
    language: str = "en"
    device: Literal["auto", "cpu", "cuda"] = "auto"

    @classmethod
    def from_config(cls, config: Any, wildcards: Any) -> "SimilaritySettings":  # noqa: ARG003
        wanted = config.metrics

        def encoder(of: Any) -> Any:
            return None if of is None else config.text_encoders[of.text_encoder]

        return cls(
            metrics=wanted,
            clip=encoder(wanted.clip_score),
            sentences=encoder(wanted.sentence_similarity),
            bert=encoder(wanted.bert_score),
            language=config.text.language,
            device=config.embed.device,
        )


@stage(device="device", execution_only={"metrics.scorer_timeout", "metrics.caption", "metrics.instances"})
def score_similarity(
    captions: In[CaptionsFile],
    manifest: In[ManifestFile],
    split: Split,
    settings: SimilaritySettings,
    report: Reporter,
    metrics: Out[MetricsFile],
    features: In[FeaturesFile] | None = None,
    model: ModelName = "",
    decoding: DecodingName = "",
) -> None:
    """Score the captions of a split by the vectors of text encoders and, with --features, of an image encoder."""
    import numpy as np

    from vitcapr.encoders.sentence_vectors import SentenceVectors, image_vectors
    from vitcapr.formats.captions import read_results
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.base import captions_to_score, write_measures
    from vitcapr.metrics.bootstrap import Measure
    from vitcapr.metrics.similarity import WEIGHT, bert_score, clip_scores, sentence_similarity

    options = settings.metrics
    data = read_manifest(manifest)
    candidates, references, sample = captions_to_score(
        read_results(captions), data, split, settings.language, options.sample_of(split), options.sampling_seed
    )
    texts = [text for of_image in references.values() for text in of_image]
    image_of = np.repeat(np.arange(len(references)), [len(of_image) for of_image in references.values()])
    measures: dict[str, Measure] = {}
    protocol: list[str] = []
    if features is not None and settings.clip is not None and options.clip_score is not None:
        prompt = options.clip_score.prompt
        encoder = SentenceVectors(**settings.clip.arguments(), device=settings.device, prompt=prompt)
        images = image_vectors(features, list(references), encoder)
        measures |= clip_scores(images, encoder(candidates), encoder(texts), image_of)
        protocol.append(f"clip:{encoder.name},w={WEIGHT},prompt={prompt.strip() or 'none'}")
    if settings.sentences is not None:
        encoder = SentenceVectors(**settings.sentences.arguments(), device=settings.device)
        measures |= sentence_similarity(encoder(candidates), encoder(texts), image_of)
        protocol.append(f"sentences:{encoder.name},pool={settings.sentences.pool},mean over references")
    if settings.bert is not None and options.bert_score is not None:
        bert = options.bert_score
        encoder = SentenceVectors(**settings.bert.arguments(), device=settings.device)
        reader, vectors = encoder.tokens(bert.layer)
        tokens, others = reader.tokenize(candidates), reader.tokenize(texts)
        measures |= bert_score(tokens, others, image_of, vectors, vectors.special, bert.idf)
        stated = f"layer={'last' if bert.layer is None else bert.layer},idf={'references' if bert.idf else 'none'}"
        protocol.append(f"bert_score:{encoder.name},{stated},maximum over references,baseline rescaling=none")
    protocol += [f"images:{len(references)}", *sample]
    scores = write_measures(
        metrics, data, split, measures, protocol, model=model, decoding=decoding, **options.resampling
    )
    shown = (f"{name} {value['value']:.4f}" for name, value in scores.items())
    report.line(f"score_similarity: {', '.join(shown)}")
