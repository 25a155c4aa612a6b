from vitcapr.config.report import SimilaritySettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import DecodingName, Device, In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


@stage(execution_only={"metrics.caption", "metrics.instances"})
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
    device: Device = "auto",
) -> None:
    """Score the captions of a split by the vectors of text encoders and, with features, of an image encoder."""
    from vitcapr.encoders.sentence_vectors import SentenceVectors
    from vitcapr.formats.captions import read_results
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.base import captions_to_score, write_measures
    from vitcapr.metrics.labels import summarise
    from vitcapr.metrics.similarity import PROMPT, CaptionSimilarity
    from vitcapr.store.reader import open_features

    options, data = settings.metrics, read_manifest(manifest)
    written, references, sample = captions_to_score(
        read_results(captions), data, split, settings.language, options.sampled_images
    )
    compared = CaptionSimilarity(written, list(references.values()))
    if features is not None and settings.clip is not None and options.clip_score is not None:
        clip = SentenceVectors(**{**settings.clip.values("store_dtype"), "prompt": PROMPT}, device=device)
        with open_features(features) as store:
            store.check_rows("image_id", data)
            clip.check_images(store.attributes, store["cls"].shape[1] if "cls" in store else None, features)
            compared.by_clip(clip, store["cls"].gather(data.rows_of(list(references))).astype("float32"))
    if settings.sentences is not None:
        sentences = SentenceVectors(**settings.sentences.values("store_dtype"), device=device)
        compared.by_sentences(sentences, sentences.pool)
    if settings.bert is not None and options.bert_score is not None:
        bert = SentenceVectors(**settings.bert.values("store_dtype"), device=device)
        compared.by_tokens(bert, options.bert_score.layer, options.bert_score.idf)
    protocol, names = [*compared.protocol, f"images:{len(references)}", *sample], {"model": model, "decoding": decoding}
    scores = write_measures(metrics, data, split, compared.measures, protocol, **names, **options.resampling)
    report.line(f"score_similarity: {summarise(scores)}")
