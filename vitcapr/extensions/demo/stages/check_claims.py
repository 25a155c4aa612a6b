from vitcapr.config.report import SCORERS, ScoreSettings
from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import DecodingName, In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


@stage(execution_only=SCORERS)
def check_claims(
    captions: In[kinds.CaptionsFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: ScoreSettings,
    report: Reporter,
    metrics: Out[kinds.MetricsFile],
    claims: Out[kinds.CheckedClaimsFile],
    model: ModelName = "",
    decoding: DecodingName = "",
) -> None:
    """Count which claims of captions of scenes are right: counts, colours, relations."""
    from vitcapr.extensions.demo.dataset import DATASET
    from vitcapr.extensions.demo.statements import checked_claims, claim_accuracy, read_caption
    from vitcapr.formats.captions import read_results
    from vitcapr.formats.claims import write_claims
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.caption_metric import check_candidates, write_measures

    data = read_manifest(manifest)
    if data.dataset != DATASET:
        raise UserError(f"claims can be checked on {DATASET}, not on {data.dataset}", where=manifest)
    images = data.images["image_id"].iloc[data.rows(split)].tolist()
    written = {image: result.caption for image, result in read_results(captions).items()}
    made = [read_caption(caption) for caption in check_candidates(written, images)]
    # Every reference of a scene describes all of it, so any one of them serves.
    reference = dict(data.captions[data.captions["language"] == "en"][["image_id", "text"]].to_numpy())
    truth = [read_caption(reference[image]) for image in images]
    write_claims(claims, dict(zip(images, map(checked_claims, made, truth), strict=True)))
    protocol = ["claims:read-back", f"images:{len(made)}"]
    scores = write_measures(
        metrics,
        data,
        split,
        claim_accuracy(made, truth),
        protocol,
        model=model,
        decoding=decoding,
        **settings.metrics.resampling,
    )
    report.line(f"check_claims: {scores['claims_true']['value']:.1%} of {len(made)} captions make only right claims")
