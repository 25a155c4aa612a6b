"""Differences between a published file and the same file computed again: equal, floating point, or another result."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vitcapr.extensions.publications.contents import TRAINING_SCORES
from vitcapr.files import read_json, sha256_file
from vitcapr.formats.captions import DecodedCaption, read_captions
from vitcapr.formats.containers import read_parquet
from vitcapr.formats.embeddings import read_embeddings
from vitcapr.pipeline.fingerprint import differences

EXACT = 2e-8
"""Difference of two scores of the same captions: they are written with eight decimals."""
LIKELIHOOD, TIE = 0.02, 0.05
"""Largest difference of a log-probability of a word, and of the scores of two captions, that floating point makes."""
VECTOR = 1e-3
"""Largest difference of a number of a unit vector that floating point makes."""
_SHOWN = 3
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")

Likelihoods = Callable[[Mapping[str, Sequence[str]]], Mapping[str, Sequence[float]]]
"""From the words of a caption of each image to the log-probabilities of the words and of the end."""


class Difference(NamedTuple):
    """A difference of a file.

    Attributes:
        what: the images or scores that differ, with both values.
        floating: whether the arithmetic of another processor explains it.
        wording: whether all numbers agree and only words differ.
    """

    what: str
    floating: bool = False
    wording: bool = False


def compare_files(published: Path, again: Path, likelihoods: Likelihoods | None = None) -> list[Difference]:
    """Return the differences of two files of one kind; none if they agree.

    Args:
        likelihoods: of the model that wrote captions; None for captions that a model only reordered.
    """
    if sha256_file(published) == sha256_file(again):
        return []
    if published.name == "captions.json":
        return list(_captions(read_captions(published), read_captions(again), likelihoods))
    if published.name == "embeddings.npz":
        return list(_embeddings(published, again))
    if published.suffix == ".parquet":
        return list(_tables(published, again))
    if published.suffix == ".npz":
        return list(_arrays(published, again))
    if published.suffix == ".json":
        return list(_records(read_json(published), read_json(again)))
    return list(_lines(published, again)) if published.suffix != ".gz" else [Difference("another content")]


def _some(what: str, items: Sequence[str]) -> str:
    more = f", and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return f"{what}: {'; '.join(items[:_SHOWN])}{more}"


def _captions(
    published: Mapping[str, DecodedCaption], again: Mapping[str, DecodedCaption], likelihoods: Likelihoods | None
) -> Iterator[Difference]:
    if odd := sorted(published.keys() ^ again.keys()):
        yield Difference(_some("captions of other images", odd))
        return
    changed = [image for image in again if published[image].caption != again[image].caption]
    words = {image: published[image].candidates[0].tokens for image in changed}
    own = likelihoods(words) if likelihoods and words else {}
    floating, forged = [], []
    for image in changed:
        known, new = published[image].candidates[0], again[image].candidates
        same = next((one for one in new if one.caption == known.caption), None)
        scores = own.get(image) or (same.token_log_probs if same else ())
        is_own = len(scores) == len(known.token_log_probs) and bool(
            np.allclose(scores, known.token_log_probs, rtol=0, atol=LIKELIHOOD)
        )
        is_tie = abs(known.score - new[0].score) <= TIE or _tie_at_first(known.tokens, new[0].tokens, scores, new[0])
        text = f"image '{image}' published '{published[image].caption}', computed again '{again[image].caption}'"
        (floating if is_own and is_tie else forged).append(text)
    if floating:
        what = f"{len(floating)} of {len(again)} captions changed, each as likely as the published one"
        yield Difference(_some(what, floating), floating=True)
    if forged:
        pairs = [
            f"'{one}' and '{other}'"
            for place, one in enumerate(changed)
            for other in changed[place + 1 :]
            if published[one].caption == again[other].caption and published[other].caption == again[one].caption
        ]
        hint = [_some("as if the features were exchanged", pairs)] if pairs else []
        yield Difference("; ".join([_some(f"{len(forged)} captions are not the model's", forged), *hint]))
    yield from _stated_likelihoods(published, again)


def _tie_at_first(known: Sequence[str], new: Sequence[str], scores: Sequence[float], best: Any) -> bool:
    """Return whether the first word that differs is as likely as the one in its place."""
    at = next((place for place, pair in enumerate(zip(known, new, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(known), len(new)) if at is None else at
    return at < len(scores) and abs(scores[at] - best.token_log_probs[at]) <= TIE


def _stated_likelihoods(
    published: Mapping[str, DecodedCaption], again: Mapping[str, DecodedCaption]
) -> Iterator[Difference]:
    """Yield candidates whose stated log-probabilities are not those of the same words computed again."""
    wrong, largest, lost = [], 0.0, []
    for image, entry in again.items():
        new = {one.caption: one for one in entry.candidates}
        stated = published[image].candidates
        if entry.caption == published[image].caption and (entry.oracle, len(new)) != (
            published[image].oracle,
            len({one.caption for one in stated}),
        ):
            lost.append(image)
        for one in stated:
            if one.caption not in new:
                continue
            pair = (np.array([*one.token_log_probs, one.log_prob, one.score]) for one in (one, new[one.caption]))
            first, second = pair
            gap = float(abs(first - second).max()) if first.shape == second.shape else np.inf
            largest = max(largest, gap)
            if gap > TIE:
                wrong.append(f"image '{image}', '{one.caption}': {first[-1]:.4f}, again {second[-1]:.4f}")
    if wrong:
        yield Difference(_some("stated likelihoods are not the model's", wrong))
    elif largest:
        yield Difference(f"likelihoods differ by {largest:.1g} at most", floating=True)
    if lost:
        yield Difference(_some("another number of candidates, or another mark of the oracle", lost))


def _embeddings(published: Path, again: Path) -> Iterator[Difference]:
    first, second = read_embeddings(published), read_embeddings(again)
    for name, one, other in zip(first._fields, first, second, strict=True):
        if one.shape != other.shape or (name not in ("images", "captions") and not np.array_equal(one, other)):
            yield Difference(f"{name} has the rows of other images or captions")
            continue
        gaps = np.abs(one - other).max(axis=-1) if one.ndim == 2 else np.zeros(1)
        rows = np.flatnonzero(gaps > VECTOR)
        if len(rows):
            owner = first.image_row if name == "images" else first.caption_row
            yield Difference(_some(f"{len(rows)} {name} have other vectors, rows of the data set", [str(owner[row]) for row in rows]))
        elif gaps.max() > 0:
            yield Difference(f"{name} differ by {gaps.max():.1g} at most", floating=True)


def _tables(published: Path, again: Path) -> Iterator[Difference]:
    first, second = (read_parquet(path).to_pandas() for path in (published, again))
    if missing := [name for name in first.columns if name not in second.columns]:
        yield Difference(f"columns that are not computed: {', '.join(missing)}")
        return
    if list(first["image_id"]) != list(second["image_id"]):
        yield Difference(f"scores of other images: {len(first)}, again {len(second)}")
        return
    for name in (name for name in first.columns if name not in TRAINING_SCORES):
        pairs = zip(first["image_id"], first[name], second[name], strict=True)
        wrong = [f"image '{image}'" for image, one, other in pairs if not _equal(one, other)]
        if wrong:
            yield Difference(_some(f"{len(wrong)} values of {name}", wrong))


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-9, atol=EXACT, equal_nan=True)


def _arrays(published: Path, again: Path) -> Iterator[Difference]:
    with np.load(published, allow_pickle=False) as one, np.load(again, allow_pickle=False) as other:
        if one.files != other.files:
            yield Difference("other arrays")
            return
        for name in one.files:
            first, second = one[name], other[name]
            if first.shape != second.shape or not _equal(first, second):
                rows = np.flatnonzero(first != second) if first.shape == second.shape else []
                yield Difference(_some(f"{len(rows)} values of {name}", [f"row {row}" for row in rows]))


def _records(published: Any, again: Any) -> Iterator[Difference]:
    found = []
    for key, old, new in differences(published, again):
        one, other = json.loads(old), json.loads(new)
        if one is None and isinstance(other, dict):  # A score that a later version of vitcapr adds.
            continue
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (one, other))
        if TRAINING_SCORES.isdisjoint(key.split(".")) and not (numbers and abs(one - other) <= EXACT):
            found.append(f"{key} {old}, again {new}")
    if found:
        yield Difference("; ".join(found[:10]) + (f", and {len(found) - 10} more" if len(found) > 10 else ""))


def _lines(published: Path, again: Path) -> Iterator[Difference]:
    first, second = (path.read_bytes().decode("utf-8", "replace").splitlines() for path in (published, again))
    pairs = [(one, other) for one, other in zip(first, second, strict=False) if one != other]
    if len(first) != len(second):
        yield Difference(f"{len(first)} lines, again {len(second)}")
    if pairs:
        same = len(first) == len(second) and all(_NUMBER.findall(one) == _NUMBER.findall(other) for one, other in pairs)
        what = f"{len(pairs)} lines" + (", in words alone" if same else "")
        yield Difference(_some(what, [f"'{one[:160]}', again '{other[:160]}'" for one, other in pairs]), wording=same)
