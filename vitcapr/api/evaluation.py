"""Scores of captions against references, of any system."""

import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from vitcapr.api.pairs_check import UNCHECKED, check_captions, check_instances
from vitcapr.config.report import FOR_ENGLISH
from vitcapr.data.archive import Rejected
from vitcapr.data.remarks import marks_remark
from vitcapr.data.rows import Columns, captions_of, read_rows
from vitcapr.data.table import USUAL
from vitcapr.errors import UserError
from vitcapr.files import read_json
from vitcapr.formats.captions import (
    ENTRY_MARKS,
    CocoCaption,
    not_counted,
    read_coco_references,
    read_instances,
    read_results,
)
from vitcapr.formats.identity import match_images
from vitcapr.formats.records import reading
from vitcapr.formats.scores import Score
from vitcapr.metrics.caption_metric import ENGLISH, ORACLE, is_oracle, one_line
from vitcapr.metrics.scoring import score_captions, select_metrics
from vitcapr.metrics.system_comparison import compare_systems, scored_system
from vitcapr.text.normalise import units_of

METRICS = ("bleu", "meteor", "rouge_l", "cider")

Captions = Any
"""A results file of COCO; or the caption of each image by its id, as a mapping or a series of pandas. A list of one
caption is this caption."""
References = Any
"""An annotations file of COCO, a JSON object of lists by image, or a table that ``data.table`` reads; or the
references of each image by its id. A text is one reference."""
_MOST_SAMPLES = 1_000_000
_OFTEN = 5


@dataclass(frozen=True)
class Evaluation:
    """The scores of a system.

    Attributes:
        scores: a row a score: ``metric``, ``value``, ``low``, ``high`` (its 95 % interval), ``n``. Values are
            fractions.
        per_image: a row an image: its scores alone.
        protocol: how the numbers were made; without it they cannot be compared with others.
        differences: if there is a system to compare with, a row a score: ``metric``, ``before`` (that system),
            ``after`` (this one), ``difference``, ``low``, ``high``, ``p_value``, ``verdict``.
        without_captions: images of the references that have no caption and are not scored.
        remarks: lines on what in the input may make the scores other than they should be.
        content: whether captions and references, or images and texts, belong together by their content.
    """

    scores: pd.DataFrame
    per_image: pd.DataFrame
    protocol: str
    differences: pd.DataFrame | None = None
    without_captions: int = 0
    remarks: Sequence[str] = ()
    content: str = UNCHECKED


def evaluate(
    captions: Captions,
    references: References,
    *,
    against: Captions | None = None,
    metrics: Sequence[str] = METRICS,
    instances: str | Path | Sequence[str | Path] = (),
    language: str = "en",
    samples: int = 1000,
    seed: int = 0,
    content_check: bool = True,
) -> Evaluation:
    """Score captions as COCO's evaluation does, with 95 % intervals over the images.

    Images without a caption are left out, as COCO's evaluation leaves them out.

    Examples:
        >>> vitcapr.evaluate("results.json", "captions_val2017.json").scores  # doctest: +SKIP

    Args:
        captions: one for each image, by its id or by its ``file_name`` in the annotations; with other folders, by a
            file name that is unique (:func:`vitcapr.formats.identity.match_images`).
        references: of these images, and perhaps of others.
        against: the captions of another system for the same images.
        metrics: names of modules of ``vitcapr.metrics.captions``; ``vitcapr evaluate --help`` lists them.
        instances: ``instances_*.json`` of COCO; with them, CHAIR is scored too.
        language: of the captions. If it is not English, tokens are Chinese characters and runs of other letters and
            digits, and the metrics that read English alone (chair, meteor, spice) are left out.
        samples: bootstrap samples of the images; 0 for no intervals.
        seed: of these samples.
        content_check: compare the words of the captions with the references of their own and of other images. False:
            they are right, whatever their words say; the protocol says so.

    Raises:
        UserError: a file is not of COCO's form, an image has no reference or no caption, a caption is empty, or the
            two systems are not of the same images.
    """
    check_resampling(samples, seed)
    files = [instances] if isinstance(instances, str | Path) else instances
    if files and language != ENGLISH:
        raise UserError(f"CHAIR reads English, not '{language}'", remedy="leave out the instances")
    names = [*([metrics] if isinstance(metrics, str) else metrics), *(["chair"] if files else [])]
    chosen = select_metrics([name for name in names if language == ENGLISH or name not in FOR_ENGLISH])
    texts, files_of_images = read_references(references)
    written = read_captions(captions, texts, files_of_images, "the captions")
    uncounted = {image for image, of_image in texts.items() if not of_image and isinstance(references, str | Path)}
    written = {image: one for image, one in written.items() if image not in uncounted}
    if not written:
        raise UserError("no image of the captions has a reference that counts", remedy="give other references")
    texts = {image: of_image for image, of_image in texts.items() if image not in uncounted}
    scored_texts = {image: texts[image] for image in texts if image in written}
    name = Path(references).stem if isinstance(references, str | Path) else "references"
    named = {image: files_of_images.get(image, image) for image in scored_texts}
    objects = read_instances([Path(file) for file in files], named) if files else {}
    content = [check_captions(_captions(written), texts, "the captions")] if content_check else [UNCHECKED]
    if content_check and files:
        content.append(check_instances(objects, scored_texts))

    def score(system: Mapping[str, CocoCaption]) -> tuple[dict[str, Any], pd.DataFrame]:
        scored = score_captions(
            chosen,
            [system[image].caption for image in scored_texts],
            scored_texts,
            split=name,
            language=language,
            samples=samples,
            seed=seed,
            instances=objects,
        )
        protocol = (ORACLE if is_oracle(system.values()) else "") + scored.protocol
        protocol += "" if content_check else f"|{UNCHECKED}"
        place = {"dataset": name, "split": name, "model": "", "decoding": ""}
        return {**place, "metrics": scored.scores, "protocol": protocol}, scored.per_image

    report, per_image = score(written)
    differences, other = None, dict[str, CocoCaption]()
    if against is not None:
        known = {**texts, **{image: [] for image in uncounted}}
        other = read_captions(against, known, files_of_images, "the other captions")
        other = {image: one for image, one in other.items() if image not in uncounted}
        if other.keys() != written.keys():
            image = min(other.keys() ^ written.keys())
            what = "the two systems captioned different images"
            raise UserError(what, where=f"image {image}", remedy="give the same images")
        if content_check:
            content.append(f"the other {check_captions(_captions(other), texts, 'the other captions')}")
        before, after = scored_system(*score(other)), scored_system(report, per_image)
        differences = score_frame(compare_systems(before, after, samples, seed)["metrics"])
    scores = report["metrics"]
    table = per_image[["image_id", "caption", "tokens", *(column for column in scores if column in per_image)]]
    remarks = [
        f"{what}: {remark}"
        for what, each in {
            "captions": [one.caption for one in written.values()],
            "the other captions": [one.caption for one in other.values()],
            "references": [*chain(*texts.values())],
        }.items()
        if (remark := marks_remark(each))
    ]
    if uncounted:
        remarks.append(f"{len(uncounted)} images are not scored: their file says that no reference of them counts")
    remarks += _unknown_words([one.caption for one in written.values()], [*chain(*texts.values())], language)
    copies = sum(one.caption in texts[image] for image, one in written.items())
    if copies > len(written) / 2:
        remedy = "to score people, take each caption out of its references"
        remarks.append(f"{copies} of {len(written)} captions are references of their image, word for word; {remedy}")
    missing = len(texts) - len(scored_texts)
    content_lines = "\n".join(content)
    return Evaluation(score_frame(scores), table, report["protocol"], differences, missing, remarks, content_lines)


def _captions(system: Mapping[str, CocoCaption]) -> dict[str, str]:
    return {image: one.caption for image, one in system.items()}


def check_resampling(samples: int, seed: int) -> None:
    """Check that the number of bootstrap samples and their seed are whole numbers of a usable size."""
    for name, value, most in (("samples", samples, _MOST_SAMPLES), ("seed", seed, 2**63)):
        if not hasattr(value, "__index__") or not 0 <= value <= most:
            raise UserError(f"{name} is {value!r}", remedy=f"give a whole number from 0 to {most:,}")


def _unknown_words(captions: Sequence[str], references: Sequence[str], language: str) -> list[str]:
    """Return a remark if most words, or a word of most captions, are in no reference: a language, marks, a prompt."""

    def words(text: str) -> list[str]:
        units = text.lower().split() if language == ENGLISH else units_of(text)
        return [word for unit in units if (word := unit.strip(string.punctuation))]

    known = {word for text in references for word in words(text)}
    written = [word for text in captions for word in words(text)]
    unknown = [word for word in written if word not in known]
    if 2 * len(unknown) > len(written):
        return [f"{len(unknown)} of {len(written)} words of the captions are in no reference, '{unknown[0]}' first"]
    captions_with = Counter(word for text in captions for word in set(words(text)) - known)
    word, count = next(iter(captions_with.most_common(1)), ("", 0))
    if 2 * count <= len(captions) or count < _OFTEN:
        return []
    return [f"'{word}' is in {count} of {len(captions)} captions and in no reference"]


def read_captions(
    captions: Captions, references: Mapping[str, Sequence[str]], files: Mapping[str, str], what: str
) -> dict[str, CocoCaption]:
    """Return captions by image id, without line breaks; a name in ``files``, by image id, stands for its image."""
    if isinstance(captions, str | Path):
        where, written = str(captions), read_results(Path(captions))
    else:
        where, texts = what, _texts_by_image(captions, what)
        if several := [image for image, given in texts.items() if len(given) != 1]:
            raise UserError(f"{len(texts[several[0]])} captions of an image", where=f"{what}, image {several[0]}")
        written = {image: CocoCaption(image_id=image, caption=given[0]) for image, given in texts.items()}
    if not written:
        raise UserError("there is no caption to score", where=where)
    ids = list({**references, **files})
    rows = match_images([list(written)], [ids, [files.get(image, image) for image in ids]], where)
    image_of = {name: name if row is None else ids[row] for name, row in zip(written, rows, strict=True)}
    if unknown := [name for name, image in image_of.items() if image not in references]:
        what = f"{len(unknown)} of {len(written)} captions are of images that have no reference"
        remedy = "give the references of these images, or leave the captions out"
        raise UserError(what, where=f"{where}, image {unknown[0]}", remedy=remedy)
    by_image: dict[str, CocoCaption] = {}
    for name, image in image_of.items():
        if image in by_image:
            raise UserError("an image has two captions", where=f"{where}, image {image} and {name}", remedy="keep one")
        by_image[image] = written[name].model_copy(update={"caption": one_line(written[name].caption)})
    return by_image


def read_references(references: References) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return references by image id, without line breaks, and the file name of each image id."""
    if isinstance(references, str | Path):
        by_image, files = _read_reference_file(Path(references))
    else:
        by_image, files = _texts_by_image(references, "the references"), {}
    return {image: [one_line(text) for text in texts] for image, texts in by_image.items()}, files


def _read_reference_file(path: Path) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Read annotations of COCO, a JSON object of lists by image, or a table in a form of ``data.table.captions``."""
    if path.suffix.lower() == ".json":
        with reading(path, "references", "write JSON"):
            content = read_json(path)
        if isinstance(content, dict) and not {"annotations", "images", "categories"} & content.keys():
            return _texts_by_image(content, str(path)), {}
        if isinstance(content, dict):
            return read_coco_references(path)
    rejected: Rejected = []
    names = {"image": ("image_id", *USUAL["image"]), "caption": ("references", *USUAL["caption"])}
    columns = Columns({**names, **ENTRY_MARKS}, tuple(names))
    by_image: dict[str, list[str]] = {}
    for row in read_rows(path, columns, rejected, key="the references"):
        if not row.name("image"):
            rejected.append((row.place, "row without an image"))
        texts = captions_of(row.cells.get("caption"), row.place, rejected)
        by_image.setdefault(row.name("image"), []).extend([] if not_counted(row.cells) else texts)
    if rejected:
        what = f"{len(rejected)} rows of references cannot be read, {rejected[0][0]} first: {rejected[0][1]}"
        raise UserError(what, where=path, remedy="correct them")
    return by_image, {}


def _texts_by_image(given: Any, what: str) -> dict[str, list[str]]:
    """Return the text or the texts of each image by its id, as text, in a mapping or a series of pandas."""
    if not isinstance(given, Mapping | pd.Series):
        remedy = "give a file of COCO, or a dictionary of image ids"
        raise UserError(f"{what} are a {type(given).__name__}", remedy=remedy)
    by_image: dict[str, list[str]] = {}
    for image, entry in given.items():
        several = isinstance(entry, Iterable) and not isinstance(entry, str | bytes | Mapping)
        texts, where = list(entry) if several else [entry], f"{what}, image {image}"
        if wrong := [text for text in texts if not isinstance(text, str)]:
            remedy = "give a text or a list of texts for each image"
            raise UserError(f"{wrong[0]!r:.60} is no text", where=where, remedy=remedy)
        if str(image) in by_image:
            raise UserError("an image is there twice", where=where, remedy="keep one")
        by_image[str(image)] = texts
    return by_image


def score_frame(scores: Mapping[str, Score | Mapping[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([{"metric": name, **score} for name, score in scores.items()])
