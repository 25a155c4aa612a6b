"""People's captions of the Flickr8k test images against those of other people."""

from pathlib import Path

import numpy as np
import pytest

from vitcapr.metrics import java
from vitcapr.metrics.bootstrap import interval
from vitcapr.metrics.caption_metric import Caption
from vitcapr.metrics.captions.bleu import bleu
from vitcapr.metrics.captions.cider import cider
from vitcapr.metrics.captions.diversity import dangling_share
from vitcapr.metrics.captions.meteor import find_paraphrases, measure_of, write_paraphrases
from vitcapr.metrics.captions.rouge_l import rouge_l
from vitcapr.metrics.java import tokenize


@pytest.fixture(scope="module")
def people(real_data: Path) -> tuple[list[str], list[list[str]]]:
    """1,000 image names and the five tokenised captions of each."""
    text = real_data / "flickr8k/Flickr8k_text"
    images = text.joinpath("Flickr_8k.testImages.txt").read_text().split()
    written: dict[str, list[str]] = {image: [] for image in images}
    for line in text.joinpath("Flickr8k.token.txt").read_text(encoding="utf-8").splitlines():
        name, caption = line.split("\t")
        if (image := name.split("#")[0]) in written:
            written[image].append(caption)
    flat = iter(tokenize([Caption(image, text) for image in images for text in written[image]]))
    return images, [[next(flat) for _ in written[image]] for image in images]


@pytest.mark.data
def test_people_against_people(people: tuple[list[str], list[list[str]]]) -> None:
    """Each of the five against the other four.

    Vinyals et al., Show and Tell (2015), table 2, give 0.70 for BLEU-1 of people on Flickr8k, corrected for the
    fifth reference.
    """
    images, texts = people
    assert (len(images), {len(five) for five in texts}) == (1000, {5})
    rounds = []
    for left_out in range(5):
        candidates = [five[left_out] for five in texts]
        references = [five[:left_out] + five[left_out + 1 :] for five in texts]
        measures = bleu(candidates, references)
        measures |= {
            "rouge_l": rouge_l(candidates, references),
            "cider": cider(candidates, references),
        }
        measures["dangling"] = dangling_share([text.split() for text in candidates])
        rounds.append({name: measure.value for name, measure in measures.items()})
    found = {name: float(np.mean([values[name] for values in rounds])) for name in rounds[0]}
    assert 0.60 < found["bleu_1"] < 0.72
    assert 0.18 < found["bleu_4"] < 0.25
    assert 0.45 < found["rouge_l"] < 0.55
    assert 0.70 < found["cider"] < 1.00
    assert found["dangling"] < 0.05


@pytest.mark.data
def test_meteor_of_people(people: tuple[list[str], list[list[str]]], tmp_path: Path) -> None:
    images, texts = people
    references = {image: five[1:] for image, five in zip(images, texts, strict=True)}
    candidates = [Caption(image, five[0]) for image, five in zip(images, texts, strict=True)]
    counts = java.meteor_statistics(candidates, list(references.values()))
    measure = measure_of(counts)
    assert 0.22 < measure.value < 0.28
    found = interval(measure, 1000, 0)
    assert found is not None
    assert found.low < measure.value < found.high < found.low + 0.02
    write_paraphrases(tmp_path, references)
    table = find_paraphrases(tmp_path, references)
    assert java.meteor_statistics(candidates, list(references.values()), paraphrases=table) == counts
