from vitcapr.config.metrics import SimilaritySettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import DecodingName, In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


@stage(device="device", execution_only={"metrics.scorer_timeout", "metrics.caption", "metrics.instances"})
def score_similarity(
    captions: In[kinds.CaptionsFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: SimilaritySettings,
    report: Reporter,
    metrics: Out[kinds.MetricsFile],
    features: In[kinds.FeaturesFile] | None = None,
    model: ModelName = "",
    decoding: DecodingName = "",
) -> None:
    """Score the captions of a split by the vectors of text encoders and, with features, of an image encoder."""
    from vitcapr.encoders.sentence_vectors import SentenceVectors
    from vitcapr.formats.captions import read_results
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.base import captions_to_score, write_measures
    from vitcapr.metrics.labels import summarise
    from vitcapr.metrics.similarity import CaptionSimilarity
    from vitcapr.store.image_vectors import image_vectors

    options, data, device = settings.metrics, read_manifest(manifest), settings.device
    unread = ("store_dtype", "device")
    written, references, sample = captions_to_score(
        read_results(captions), data, split, settings.language, options.sampled_images, options.sampling_seed
    )
    compared = CaptionSimilarity(written, list(references.values()))
    if features is not None and settings.clip is not None and options.clip_score is not None:
        prompt = options.clip_score.prompt
        clip = SentenceVectors(**{**settings.clip.values(*unread), "prompt": prompt}, device=device)
        compared.by_clip(clip, image_vectors(features, list(references), clip), prompt)
    if settings.sentences is not None:
        sentences = SentenceVectors(**settings.sentences.values(*unread), device=device)
        compared.by_sentences(sentences, sentences.pool)
    if settings.bert is not None and options.bert_score is not None:
        bert = SentenceVectors(**settings.bert.values(*unread), device=device)
        compared.by_tokens(bert, options.bert_score.layer, options.bert_score.idf)
    protocol, names = [*compared.protocol, f"images:{len(references)}", *sample], {"model": model, "decoding": decoding}
    scores = write_measures(metrics, data, split, compared.measures, protocol, **names, **options.resampling)
    report.line(f"score_similarity: {summarise(scores)}")
