"""Captions against references: BLEU, METEOR, ROUGE-L, CIDEr, diversity, each with its interval."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.captions import read_results
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.metrics import write_metrics
from vitcapr.artefacts.per_image import write_per_image
from vitcapr.artefacts.vocabulary import Vocabulary
from vitcapr.cli.parts.options import (
    CaptionedSplit,
    CaptionerVocabulary,
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
from vitcapr.metrics import java, oracle
from vitcapr.metrics.inputs import check_candidates
from vitcapr.metrics.references import references_of
from vitcapr.metrics.scoring import score_captions, wanted_metrics
from vitcapr.progress import Reporter


def main(
    captions: Captions,
    manifest: ManifestFile,
    vocabulary: CaptionerVocabulary,
    split: CaptionedSplit,
    output: MetricsOutput,
    per_image: Annotated[Path, typer.Option(help="per_image.parquet to write: a row an image")],
    paraphrases: Annotated[
        Path | None, typer.Option(help="card.json of the paraphrases of these references; without it METEOR reads all")
    ] = None,
    model: ModelName = "",
    decoding: DecodingName = "",
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Score the captions of a split against the references of its manifest."""
    chosen = parse_settings(ScoreSettings, settings)
    options = chosen.metrics
    metrics = wanted_metrics(options.metrics)
    data = read_manifest(manifest)
    signature = Vocabulary.read(vocabulary).signature
    references = references_of(data, split, chosen.language)
    results = read_results(captions)
    written = check_candidates({image: result.caption for image, result in results.items()}, list(references))
    by_oracle = oracle.is_oracle(results.values())
    if by_oracle:
        oracle.check_name(decoding, captions)

    with Reporter(log) as reporter:
        against = sum(map(len, references.values()))
        reporter.line(f"score: {len(written)} captions against {against} references with {java.find_java()}")
        scored = score_captions(
            metrics,
            written,
            references,
            split=split,
            language=chosen.language,
            training=lambda: data.captions_of("train", chosen.language)["text"].tolist(),
            paraphrases=paraphrases,
            timeout=options.scorer_timeout,
            samples=options.bootstrap_samples,
            seed=options.bootstrap_seed,
        )
        write_per_image(per_image, scored.per_image)
        write_metrics(
            output,
            dataset=data.dataset,
            split=split,
            model=model,
            decoding=decoding,
            metrics=scored.scores,
            protocol=(oracle.PROTOCOL if by_oracle else "") + f"{scored.protocol}|{signature}",
        )
        shown = (f"{name} {score['value']:.4f}" for name, score in scored.scores.items() if score["low"] is not None)
        reporter.line(f"score: {', '.join(shown)}")


if __name__ == "__main__":
    launch(main, shelve=["output", "per_image"])
