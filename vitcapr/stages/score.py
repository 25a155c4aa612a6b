"""Scores of captions: BLEU, METEOR, ROUGE-L, CIDEr, diversity, each with its interval."""

from pathlib import Path

from vitcapr.config.metrics import ENCODERS, ScoreSettings
from vitcapr.formats.kinds import (
    CaptionsFile,
    ManifestFile,
    MetricsFile,
    ParaphrasesFolder,
    PerImageFile,
    VocabularyFile,
)
from vitcapr.pipeline.stage import DecodingName, In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


@stage(cached=True, execution_only={"metrics.scorer_timeout", *ENCODERS})
def score(
    captions: In[CaptionsFile],
    manifest: In[ManifestFile],
    vocabulary: In[VocabularyFile],
    split: Split,
    settings: ScoreSettings,
    report: Reporter,
    metrics: Out[MetricsFile],
    per_image: Out[PerImageFile],
    paraphrases: In[ParaphrasesFolder] | None = None,
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
    from vitcapr.metrics.inputs import (
        ORACLE,
        check_candidates,
        check_oracle_name,
        is_oracle,
        references_of,
        sample_references,
    )
    from vitcapr.metrics.scoring import score_captions, wanted_metrics

    options = settings.metrics
    wanted = wanted_metrics(options.metrics)
    data = read_manifest(manifest)
    signature = Vocabulary.read(vocabulary).signature
    whole = references_of(data, split, settings.language)
    results = read_results(captions)
    check_candidates({image: result.caption for image, result in results.items()}, list(whole))
    references, sample = sample_references(whole, options.sample_of(split), options.sampling_seed)
    written = [results[image].caption for image in references]
    by_oracle = is_oracle(results.values())
    if by_oracle:
        check_oracle_name(decoding, captions)
    report.line(f"score: {len(written)} captions against {sum(map(len, references.values()))} references")
    scored = score_captions(
        wanted,
        written,
        references,
        split=split,
        language=settings.language,
        training=lambda: data.captions_of("train", settings.language)["text"].tolist(),
        paraphrases=paraphrases,
        timeout=options.scorer_timeout,
        samples=options.bootstrap_samples,
        seed=options.bootstrap_seed,
        instances=read_instances([Path(path) for path in options.instances]),
    )
    write_per_image(per_image, scored.per_image)
    write_metrics(
        metrics,
        dataset=data.dataset,
        split=split,
        model=model,
        decoding=decoding,
        metrics=scored.scores,
        protocol=(ORACLE if by_oracle else "") + "|".join([scored.protocol, *sample, signature]),
    )
    shown = (f"{name} {value['value']:.4f}" for name, value in scored.scores.items() if value["low"] is not None)
    report.line(f"score: {', '.join(shown)}")
