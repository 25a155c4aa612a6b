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
    features: In[kinds.FeaturesFile],
    metrics: Out[kinds.MetricsFile],
    model: ModelName = "",
    decoding: DecodingName = "",
    device: Device = "auto",
) -> None:
    """Score the captions of a split by CLIPScore, with the image features and a text encoder of one model."""
    import numpy as np

    from vitcapr.encoders.sentence_vectors import SentenceVectors
    from vitcapr.formats.captions import read_results
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.caption_metric import captions_to_score, write_measures
    from vitcapr.metrics.clip_score import PROMPT, WEIGHT, clip_scores
    from vitcapr.metrics.labels import summarise
    from vitcapr.store.reader import open_features

    options, data = settings.metrics, read_manifest(manifest)
    written, references, sample = captions_to_score(
        read_results(captions), data, split, settings.language, options.sampled_images
    )
    with open_features(features) as store:
        store.check_rows("image_id", data)
        encoder = SentenceVectors(**{**settings.clip.values("store_dtype"), "prompt": PROMPT}, device=device)
        encoder.check_images(store.attributes, store["cls"].shape[1] if "cls" in store else None, features)
        images = store["cls"].gather(data.rows_of(list(references))).astype("float32")
    texts = [text for of_image in references.values() for text in of_image]
    image_of = np.repeat(np.arange(len(references)), [len(of_image) for of_image in references.values()])
    longest = encoder.encoder.longest
    if cut := encoder.cut([*written, *texts]):
        report.line(
            f"{cut} of {len(written) + len(texts)} captions and references have {longest} tokens or are cut to them"
        )
    measures = clip_scores(images, encoder(written), encoder(texts), image_of)
    stated = f"clip:{encoder.name},w={WEIGHT},prompt={PROMPT.strip()},max_length={longest},cut={cut}"
    protocol, names = [stated, f"images:{len(references)}", *sample], {"model": model, "decoding": decoding}
    scores = write_measures(metrics, data, split, measures, protocol, **names, **options.resampling)
    report.line(f"score_similarity: {summarise(scores)}")
