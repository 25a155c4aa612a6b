"""Captions against references: BLEU, METEOR, ROUGE-L, CIDEr, diversity, each with its interval."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from vitcapr.artefacts.captions import read_results
from vitcapr.artefacts.manifest import read_manifest
from vitcapr.artefacts.metrics import Score, write_metrics
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
from vitcapr.files import atomic_path
from vitcapr.metrics import captions as scores
from vitcapr.metrics import diversity, java, oracle, spice
from vitcapr.metrics.bootstrap import Measure
from vitcapr.metrics.inputs import Caption, check_candidates
from vitcapr.metrics.paraphrases import find_paraphrases
from vitcapr.metrics.references import references_of, tokenize_all
from vitcapr.metrics.report import interval_protocol, plain_score, score_of
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
    wanted = chosen.metrics.metrics
    if "spice" in wanted:
        spice.check_installed()
    data = read_manifest(manifest)
    signature = Vocabulary.read(vocabulary).signature
    references = references_of(data, split, chosen.language)
    images = list(references)
    results = read_results(captions)
    written = check_candidates({image: result.caption for image, result in results.items()}, images)
    by_oracle = oracle.is_oracle(results.values())
    if by_oracle:
        oracle.check_name(decoding, captions)
    candidates = [Caption(image, text) for image, text in zip(images, written, strict=True)]

    with Reporter(log) as reporter:
        against = sum(map(len, references.values()))
        reporter.line(f"score: {len(candidates)} captions against {against} references with {java.find_java()}")
        words, words_of = tokenize_all(candidates, references, chosen.metrics.scorer_timeout)
        reference_words = list(words_of.values())
        tokenized = [Caption(image, text) for image, text in zip(images, words, strict=True)]

        measures: dict[str, Measure] = {}
        plain: dict[str, Score] = {}
        if "bleu" in wanted:
            measures |= scores.bleu(words, reference_words)
        if "meteor" in wanted:
            table = None if paraphrases is None else find_paraphrases(paraphrases, words_of)
            result = java.meteor(tokenized, reference_words, chosen.metrics.scorer_timeout, paraphrases=table)
            measures["meteor"] = scores.meteor(result)
        if "rouge_l" in wanted:
            measures["rouge_l"] = scores.rouge_l(words, reference_words)
        if "cider" in wanted:
            measures["cider"] = scores.cider(words, reference_words)
        if "spice" in wanted:
            measures["spice"] = spice.spice(tokenized, reference_words, chosen.metrics.scorer_timeout)
        if "diversity" in wanted:
            split_words = [text.split() for text in words]
            training = data.captions_of("train", chosen.language)["text"].tolist()
            measures["length_mean"] = diversity.length_mean(split_words)
            measures["dangling_share"] = diversity.dangling_share(split_words)
            measures["novel_share"] = diversity.novel_share(written, training)
            count = len(images)
            plain["distinct_1"] = plain_score(diversity.distinct(split_words, 1), count)
            plain["distinct_2"] = plain_score(diversity.distinct(split_words, 2), count)
            plain["vocabulary_used"] = plain_score(diversity.vocabulary_used(split_words), count)
            plain["identical_captions"] = plain_score(diversity.identical_captions(split_words), count)

        samples, seed = chosen.metrics.bootstrap_samples, chosen.metrics.bootstrap_seed
        report = {name: score_of(measure, samples, seed) for name, measure in measures.items()} | plain
        rows = pd.DataFrame({"image_id": images, "caption": written, "tokens": words})
        for name, measure in measures.items():
            rows[name] = measure.per_image
        for column, measure in scores.by_statistics(measures).items():
            rows[column] = list(measure.statistics)
        with atomic_path(per_image) as temporary:
            rows.to_parquet(temporary, index=False)
        write_metrics(
            output,
            dataset=data.dataset,
            split=split,
            model=model,
            decoding=decoding,
            metrics=report,
            protocol=(oracle.PROTOCOL if by_oracle else "") + _protocol(chosen, references, split, signature),
        )
        shown = (name for name in ("bleu_4", "meteor", "rouge_l", "cider") if name in report)
        reporter.line("score: " + ", ".join(f"{name} {report[name]['value']:.4f}" for name in shown))


def _protocol(chosen: ScoreSettings, references: dict[str, list[str]], split: str, signature: str) -> str:
    """One line without which the numbers cannot be compared with anyone's."""
    counts = sorted({len(texts) for texts in references.values()})
    numbers = str(counts[0]) if len(counts) == 1 else f"{counts[0]}-{counts[-1]}"
    parts = ["tok:ptb", f"refs:{numbers}", f"images:{len(references)}", f"split:{split}", f"lang:{chosen.language}"]
    methods = {
        "bleu": "bleu:corpus,closest",
        "meteor": "meteor:1.5",
        "rouge_l": "rouge_l:beta=1.2",
        "cider": "cider:d,idf=refs",
        "spice": "spice:1.0",
    }
    parts += [method for metric, method in methods.items() if metric in chosen.metrics.metrics]
    parts += interval_protocol(chosen.metrics.bootstrap_samples, chosen.metrics.bootstrap_seed)
    return "|".join([*parts, signature])


if __name__ == "__main__":
    launch(main, shelve=["output", "per_image"])
