"""Differences between a published file and the same file computed again: a fault, or floating point."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vitcapr.experiment.lineage import leaves
from vitcapr.extensions.publications.publication import TRAINING_SCORES
from vitcapr.files import read_json, sha256_file
from vitcapr.formats.captions import Candidate, DecodedCaption, read_captions
from vitcapr.formats.containers import read_parquet
from vitcapr.formats.embeddings import read_embeddings

EXACT = 2e-8
"""Difference of two scores of the same captions: they are written with eight decimals."""
_BEAM = 4
"""Two scores may differ so many times more: a beam that drops a hypothesis at a tie loses what would follow it."""
VECTOR = 1e-3
"""Largest difference of a number of a unit vector by floating point."""
_PICKED, _LUCK = {"cider", "bleu_4", "meteor", "rouge_l", "spice"}, 4.0
"""Scores that a choice among equally likely captions raises, and the standard deviations that chance does not reach:
3 of 100,000 times."""
_SHOWN = 3
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_MARKUP = re.compile(r"<(style|script)\b.*?</\1>|<[^>]+>", re.DOTALL)
"""Parts of a page that nobody reads; another version of vitcapr writes other styles."""

Likelihoods = Callable[[Mapping[str, Sequence[str]]], Mapping[str, Sequence[float]]]
"""From the words of a caption of each image to the log-probabilities of the words and of the end."""


class Difference(NamedTuple):
    """A difference of a file.

    Attributes:
        what: the images or scores that differ, with both values.
        floating: whether another processor, or another wording of the same numbers, explains it.
    """

    what: str
    floating: bool = False


def tolerance(precision: str | None) -> float:
    """Return the largest difference of the log-probability of a word by floating point.

    ``auto`` is bfloat16 on many processors.
    """
    return 0.02 if precision == "float32" else 0.25


def count_changed(published: Path, again: Path) -> int:
    """Return the number of images whose captions differ."""
    first, second = read_captions(published), read_captions(again)
    return sum(image not in second or one.caption != second[image].caption for image, one in first.items())


def find_differences(
    published: Path, again: Path, likelihoods: Likelihoods | None, largest: float
) -> Iterator[Difference]:
    """Yield the differences of two files of one kind; none if they agree.

    Args:
        likelihoods: of the model that wrote captions; None for captions that were only reordered.
        largest: difference of the log-probability of a word by floating point.
    """
    if sha256_file(published) == sha256_file(again):
        return
    if published.name == "captions.json":
        captions = read_captions(published), read_captions(again)
        if odd := sorted(captions[0].keys() ^ captions[1].keys()):
            yield Difference(_some("captions of other images", odd))
            return
        yield from _captions(*captions, likelihoods, largest)
        yield from _stated_likelihoods(*captions, largest)
    elif published.name == "embeddings.npz":
        yield from _embeddings(published, again)
    else:
        yield from _values(published, again)


def _some(what: str, items: Sequence[Any]) -> str:
    more = f", and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return f"{what}: {'; '.join(map(str, items[:_SHOWN]))}{more}"


def _captions(
    published: Mapping[str, DecodedCaption],
    again: Mapping[str, DecodedCaption],
    likelihoods: Likelihoods | None,
    largest: float,
) -> Iterator[Difference]:
    changed = {image: one.candidates[0] for image, one in published.items() if one.caption != again[image].caption}
    own = likelihoods({image: known.tokens for image, known in changed.items()}) if likelihoods else {}
    floating, forged = list[str](), dict[str, str]()
    for image, known in changed.items():
        new = again[image].candidates
        same = next((one.token_log_probs for one in new if one.caption == known.caption), ())
        text = f"image '{image}' published '{known.caption}', computed again '{new[0].caption}'"
        if _is_tie(known, new[0], own.get(image, same), largest):
            floating.append(text)
        else:
            forged[image] = text
    if floating:
        what = f"{len(floating)} of {len(again)} captions changed, each as likely as the published one"
        yield Difference(_some(what, floating), floating=True)
    if forged:
        yield Difference(_some(f"{len(forged)} captions are not the model's", [*forged.values()]))
        words = {image: (published[image].caption, again[image].caption) for image in forged}
        pairs = [(a, b) for a in words for b in words if a < b and words[a] == words[b][::-1]]
        if pairs:
            yield Difference(_some("as if the features of two images were exchanged", pairs))


def _is_tie(known: Candidate, new: Candidate, own: Sequence[float], largest: float) -> bool:
    """Return whether the model could as well have written the published caption.

    Its words have the stated log-probabilities, and its score, or the first word that differs, is as likely.

    Args:
        own: the log-probabilities of the published caption by the published model.
    """
    if len(own) != len(known.token_log_probs) or not np.allclose(own, known.token_log_probs, rtol=0, atol=largest):
        return False
    shorter = min(len(known.tokens), len(new.tokens))
    first = next((n for n in range(shorter) if known.tokens[n] != new.tokens[n]), shorter)
    return min(abs(known.score - new.score) / _BEAM, abs(own[first] - new.token_log_probs[first])) <= largest


def _stated_likelihoods(
    published: Mapping[str, DecodedCaption], again: Mapping[str, DecodedCaption], largest: float
) -> Iterator[Difference]:
    """Yield candidates whose stated numbers are not those of the same words computed again."""
    wrong = list[str]()
    for image, entry in again.items():
        stated, new = published[image], {one.caption: one for one in entry.candidates}
        if stated.oracle != entry.oracle or len(stated.candidates) != len(entry.candidates):
            wrong.append(f"image '{image}': {len(stated.candidates)} candidates, again {len(entry.candidates)}")
        for one in (one for one in stated.candidates if one.caption in new):
            first, second = ([*each.token_log_probs, each.log_prob, each.score] for each in (one, new[one.caption]))
            if len(first) != len(second) or not np.allclose(first, second, rtol=0, atol=largest):
                wrong.append(f"image '{image}', '{one.caption}': {first[-1]:.4f}, again {second[-1]:.4f}")
    if wrong:
        yield Difference(_some("stated likelihoods are not the model's", wrong))


def _embeddings(published: Path, again: Path) -> Iterator[Difference]:
    first, second = read_embeddings(published), read_embeddings(again)
    for name, one, other in zip(first._fields, first, second, strict=True):
        if one.shape != other.shape or (one.ndim == 1 and not np.array_equal(one, other)):
            yield Difference(f"{name} has the rows of other images or captions")
        elif one.ndim == 2 and (gaps := np.abs(one - other).max(axis=1)).any():
            rows = (first.image_row if name == "images" else first.caption_row)[gaps > VECTOR].tolist()
            wrong = _some(f"{len(rows)} {name} have other vectors, rows of the data set", rows)
            yield Difference(wrong if rows else f"{name} differ by {gaps.max():.1g} at most", floating=not rows)


def _values(published: Path, again: Path) -> Iterator[Difference]:
    """Yield the values that differ; those that only a later version of vitcapr writes do not count."""
    first, second = _read_values(published), _read_values(again)
    wrong, worded = list[str](), list[str]()
    for name, one in first.items():
        other = second.get(name, "nothing")
        if one == other or not TRAINING_SCORES.isdisjoint(re.split("[. ]", name)):
            continue
        stated, computed = (np.array(_NUMBER.findall(text), float) for text in (one, other))
        text = f"{name} {one[:160]}, again {other[:160]}"
        if stated.shape != computed.shape or not np.allclose(stated, computed, rtol=1e-9, atol=EXACT):
            wrong.append(text)
        elif _NUMBER.sub("", one) != _NUMBER.sub("", other):
            (worded if published.suffix in (".md", ".html") else wrong).append(text)
    if wrong:
        yield Difference(_some(f"{len(wrong)} values", wrong))
    if worded:
        yield Difference(_some(f"{len(worded)} lines, in words alone", worded), floating=True)


def _read_values(path: Path) -> dict[str, str]:
    """Return the values of a file as texts, by their names; a page has the lines of its text."""
    if path.suffix == ".json":
        return dict(leaves(read_json(path)))
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return {f"{name} {n}": str(row) for name in arrays.files for n, row in enumerate(arrays[name].tolist())}
    if path.suffix == ".parquet":
        table = read_parquet(path).to_pydict()
        images = table.pop("image_id")
        rows = [(name, *row) for name, column in table.items() for row in zip(images, column, strict=True)]
        return {"images": str(images)} | {f"{name} of image '{image}'": str(value) for name, image, value in rows}
    if path.suffix == ".gz":
        return {"content": sha256_file(path)}
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".html":
        text = _MARKUP.sub("\n", text)
    lines = (line for line in text.splitlines() if line.strip())
    return {f"line {n}": line for n, line in enumerate(lines, 1)}


def favoured(published: Path, again: Path) -> Iterator[Difference]:
    """Yield scores of images that are higher as published than those of the captions computed again, too often.

    Floating point raises a score as often as it lowers one; a publisher who picks among captions that are equally
    likely raises it. The sum of n such differences, over the root of the sum of their squares, is about standard
    normal.
    """
    first, second = (read_parquet(path).to_pandas() for path in (published, again))
    for name in _PICKED & {*first.columns} & {*second.columns}:
        changes = (first[name] - second[name]).to_numpy(float)
        size = np.sqrt((changes**2).sum())
        if size and changes.sum() / size > _LUCK:
            raised, lowered = (changes > 0).sum(), (changes < 0).sum()
            what = f"the published captions raise {name} of {raised} images and lower that of {lowered}"
            yield Difference(f"{what}: picked among captions that are equally likely")
