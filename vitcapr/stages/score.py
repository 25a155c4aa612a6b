from vitcapr.config.base import find_data
from vitcapr.config.report import ENCODERS, ScoreSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import DecodingName, In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


@stage(cached=True, execution_only=ENCODERS)
def score(
    captions: In[kinds.CaptionsFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    split: Split,
    settings: ScoreSettings,
    report: Reporter,
    metrics: Out[kinds.MetricsFile],
    per_image: Out[kinds.PerImageFile],
    paraphrases: In[kinds.ParaphrasesFolder] | None = None,
    model: ModelName = "",
    decoding: DecodingName = "",
) -> None:
    """Score the captions of a split, or of a sample of its images, against the references of its manifest.

    Without the paraphrases, METEOR reads its whole table.
    """
    from vitcapr.formats.captions import read_instances, read_results
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import write_metrics, write_per_image
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.metrics.caption_metric import captions_to_score, oracle_mark
    from vitcapr.metrics.labels import summarise
    from vitcapr.metrics.scoring import score_captions, select_metrics

    options = settings.metrics
    chosen = select_metrics(options.caption)
    data, results = read_manifest(manifest), read_results(captions)
    written, references, sample = captions_to_score(
        results,
        data,
        split,
        settings.language,
        options.sampled_images,
    )
    ceiling = oracle_mark(results.values(), decoding, captions)
    table = data.image_table.read("image_id", "path")
    files = dict(zip(table["image_id"], table["path"], strict=True))
    report.line(f"score: {len(written)} captions against {sum(map(len, references.values()))} references")
    scored = score_captions(
        chosen,
        written,
        references,
        split=split,
        language=settings.language,
        training=lambda: data.captions_of("train", settings.language)["text"].tolist(),
        paraphrases=paraphrases,
        instances=read_instances([find_data(path) for path in options.instances], files),
        **options.resampling,
    )
    write_per_image(per_image, scored.per_image)
    protocol = ceiling + "|".join([scored.protocol, *sample, Vocabulary.read(vocabulary).signature])
    write_metrics(metrics, data.dataset, split, scored.scores, protocol, model=model, decoding=decoding)
    report.line(f"score: {summarise(scored.scores)}")
