"""Compare the claims of captions of scenes with those of their references: counts, colours, relations."""

from vitcapr.config.metrics import SCORERS, ScoreSettings
from vitcapr.errors import UserError
from vitcapr.formats.kinds import CaptionsFile, ManifestFile, MetricsFile
from vitcapr.pipeline.stage import DecodingName, In, ModelName, Out, Split, stage
from vitcapr.progress import Reporter


@stage(execution_only=SCORERS)
def check_claims(
    captions: In[CaptionsFile],
    manifest: In[ManifestFile],
    split: Split,
    settings: ScoreSettings,
    report: Reporter,
    metrics: Out[MetricsFile],
    model: ModelName = "",
    decoding: DecodingName = "",
) -> None:
    """Count which claims of the captions are right."""
    from vitcapr.demo.claim_accuracy import claim_accuracy
    from vitcapr.demo.scenes.dataset import DATASET
    from vitcapr.demo.scenes.reading import read_caption
    from vitcapr.formats.captions import read_results
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.scores import write_metrics
    from vitcapr.metrics.base import check_candidates
    from vitcapr.metrics.bootstrap import interval_protocol, score_of

    data = read_manifest(manifest)
    if data.dataset != DATASET:
        raise UserError(f"claims can be checked on {DATASET}, not on {data.dataset}", where=manifest)
    images = data.images["image_id"].iloc[data.rows(split)].tolist()
    written = {image: result.caption for image, result in read_results(captions).items()}
    claims = [read_caption(caption) for caption in check_candidates(written, images)]
    # Every reference of a scene describes all of it, so any one of them serves.
    reference = dict(data.captions[data.captions["language"] == "en"][["image_id", "text"]].to_numpy())
    truth = [read_caption(reference[image]) for image in images]
    samples, seed = settings.metrics.bootstrap_samples, settings.metrics.bootstrap_seed
    scores = {name: score_of(measure, samples, seed) for name, measure in claim_accuracy(claims, truth).items()}
    protocol = ["claims:read-back", f"images:{len(claims)}", f"split:{split}", *interval_protocol(samples, seed)]
    write_metrics(metrics, data.dataset, split, scores, "|".join(protocol), model=model, decoding=decoding)
    report.line(f"check_claims: {scores['claims_true']['value']:.1%} of {len(claims)} captions make only right claims")
