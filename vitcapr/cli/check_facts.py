"""What captions of scenes say, against what their references say: counts, colours, relations."""

from vitcapr.artefacts.captions import read_results
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.metrics import write_metrics
from vitcapr.cli.parts.options import (
    CaptionedSplit,
    Captions,
    DecodingName,
    Log,
    ManifestFile,
    MetricsOutput,
    ModelName,
    Settings,
)
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.metrics import ScoreSettings
from vitcapr.data.scenes.dataset import DATASET
from vitcapr.data.scenes.reading import read_caption
from vitcapr.errors import UserError
from vitcapr.metrics.claim_accuracy import claim_accuracy
from vitcapr.metrics.inputs import check_candidates
from vitcapr.metrics.report import interval_protocol, score_of
from vitcapr.progress import Reporter


def main(
    captions: Captions,
    manifest: ManifestFile,
    split: CaptionedSplit,
    output: MetricsOutput,
    model: ModelName = "",
    decoding: DecodingName = "",
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Count which claims of the captions are so."""
    chosen = parse_settings(ScoreSettings, settings)
    data = read_manifest(manifest)
    if data.dataset != DATASET:
        raise UserError(f"claims can be checked on {DATASET}, not on {data.dataset}", where=manifest)
    images = data.images["image_id"].iloc[data.rows(split)].tolist()
    written = {image: result.caption for image, result in read_results(captions).items()}
    told = [read_caption(caption) for caption in check_candidates(written, images)]
    # Every reference of a scene tells all of it: any one will do.
    reference = dict(data.captions[data.captions["language"] == "en"][["image_id", "text"]].to_numpy())
    truth = [read_caption(reference[image]) for image in images]
    samples, seed = chosen.metrics.bootstrap_samples, chosen.metrics.bootstrap_seed
    report = {name: score_of(measure, samples, seed) for name, measure in claim_accuracy(told, truth).items()}
    protocol = ["facts:read-back,claims", f"images:{len(told)}", f"split:{split}", *interval_protocol(samples, seed)]
    write_metrics(
        output,
        dataset=data.dataset,
        split=split,
        model=model,
        decoding=decoding,
        metrics=report,
        protocol="|".join(protocol),
    )
    with Reporter(log) as reporter:
        reporter.line(f"check_facts: {report['facts_true']['value']:.1%} of {len(told)} captions are true throughout")


if __name__ == "__main__":
    launch(main)
