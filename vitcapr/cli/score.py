"""Captions against references: BLEU, METEOR, ROUGE-L, CIDEr, diversity, each with its interval."""

from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

from vitcapr.cli.stage import Log, Settings, launch
from vitcapr.config.base import parse_settings
from vitcapr.config.metrics import ScoreSettings
from vitcapr.data.manifest import Manifest, read_manifest
from vitcapr.errors import UserError
from vitcapr.files import atomic_path, read_json
from vitcapr.metrics import captions as scores
from vitcapr.metrics import diversity, java, spice
from vitcapr.metrics.bootstrap import Measure
from vitcapr.metrics.inputs import Caption, check_candidates, check_text, check_tokens
from vitcapr.metrics.report import Score, plain_score, score_of, write_metrics
from vitcapr.progress import Reporter
from vitcapr.text.vocabulary import Vocabulary


def main(
    captions: Annotated[Path, typer.Option(help="captions.json of the split")],
    manifest: Annotated[Path, typer.Option(help="manifest.json of the data set")],
    vocabulary: Annotated[Path, typer.Option(help="vocabulary.json the captioner was trained with")],
    split: Annotated[str, typer.Option(help="The split that was captioned")],
    output: Annotated[Path, typer.Option(help="metrics.json to write")],
    per_image: Annotated[Path, typer.Option(help="per_image.parquet to write: a row an image")],
    model: Annotated[str, typer.Option(help="The captioner's name, for the tables")] = "",
    decoding: Annotated[str, typer.Option(help="The decoding's name, for the tables")] = "",
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Score the captions of a split against the references of its manifest."""
    chosen = parse_settings(ScoreSettings, settings)
    if chosen.language != "en":
        raise UserError(
            f"captions in the language '{chosen.language}' cannot be scored",
            where="text.language",
            remedy="the tokenizer, METEOR and the list of function words are for English, 'en'",
        )
    wanted = chosen.metrics.metrics
    if "spice" in wanted:
        spice.check_installed()
    data = read_manifest(manifest)
    signature = Vocabulary.read(vocabulary).signature
    references = _references(data, split, chosen.language)
    images = list(references)
    written = check_candidates(read_json(captions), images)
    candidates = [Caption(image, text) for image, text in zip(images, written, strict=True)]

    with Reporter(log) as reporter:
        flat = [Caption(image, text) for image, texts in references.items() for text in texts]
        for reference in flat:
            check_text(reference)
        reporter.line(f"score: {len(candidates)} captions against {len(flat)} references with {java.find_java()}")
        tokens = java.tokenize([*candidates, *flat], chosen.metrics.scorer_timeout)
        words = tokens[: len(candidates)]
        reference_words = _grouped(tokens[len(candidates) :], [len(texts) for texts in references.values()])
        check_tokens(candidates, reference_words, words)
        tokenized = [Caption(image, text) for image, text in zip(images, words, strict=True)]

        measures: dict[str, Measure] = {}
        plain: dict[str, Score] = {}
        if "bleu" in wanted:
            measures |= scores.bleu(words, reference_words)
        if "meteor" in wanted:
            result = java.meteor(tokenized, reference_words, chosen.metrics.scorer_timeout)
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
        table = pd.DataFrame({"image_id": images, "caption": written, "tokens": words})
        for name, measure in measures.items():
            table[name] = measure.per_image
        with atomic_path(per_image) as temporary:
            table.to_parquet(temporary, index=False)
        write_metrics(
            output,
            dataset=data.dataset,
            split=split,
            model=model,
            decoding=decoding,
            metrics=report,
            protocol=_protocol(chosen, references, split, signature),
        )
        shown = (name for name in ("bleu_4", "meteor", "rouge_l", "cider") if name in report)
        reporter.line("score: " + ", ".join(f"{name} {report[name]['value']:.4f}" for name in shown))


def _references(data: Manifest, split: str, language: str) -> dict[str, list[str]]:
    """The raw captions of each image of the split, in the manifest's order."""
    table = data.captions_of(split, language)
    references = {image: group["text"].tolist() for image, group in table.groupby("image_id", sort=False)}
    images = data.images["image_id"].iloc[data.rows(split)].tolist()
    if not images:
        raise UserError(f"the data set {data.dataset} has no image in the split '{split}'")
    for image in images:
        if image not in references:
            raise UserError(f"an image has no reference in the language '{language}'", where=f"image {image}")
    return {image: references[image] for image in images}


def _grouped(flat: list[str], sizes: list[int]) -> list[list[str]]:
    rest = iter(flat)
    return [[next(rest) for _ in range(size)] for size in sizes]


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
    if chosen.metrics.bootstrap_samples:
        parts.append(f"ci:95,samples={chosen.metrics.bootstrap_samples},seed={chosen.metrics.bootstrap_seed}")
    return "|".join([*parts, signature])


if __name__ == "__main__":
    launch(main)
