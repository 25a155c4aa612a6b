"""A small experiment as the stages leave it, written by hand: two decodings and a reranking of six images."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from tests.data_sets import candidate, embeddings_of, write_data_set
from vitcapr.extensions.explorer.results import Results, read_experiment
from vitcapr.formats.captions import AttentionTable, write_attention, write_captions
from vitcapr.formats.claims import Claim, write_claims
from vitcapr.formats.embeddings import write_embeddings
from vitcapr.formats.scores import RankFile, write_comparison, write_metrics, write_per_image
from vitcapr.metrics.ranks import rank_matches

HOSTILE = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"
TRUTH = (
    "a red ball is left of a white house",
    "two big red balls on the grass",
    "a black fish in the water",
    f"a small tree {HOSTILE}",
    "three yellow stars",
    "a boat on the water",
)
BEAM = (
    "a red ball is left of a black house",
    "two big red balls",
    "a black fish",
    f"a tree {HOSTILE}",
    "a star",
    "a boat",
)
RERANKED = ("a red ball is left of a white house", *BEAM[1:])


def claim(kind: str, claimed: str, *words: int, true: str | None = None) -> Claim:
    return Claim(kind, claimed, true or claimed, true is None, words)


BALL = [claim("objects", "ball", 2), claim("counts", "one", 0), claim("colors", "red", 1)]
HOUSE = [claim("objects", "house", 8), claim("counts", "one", 6)]
LEFT = claim("relations", "ball left house", 4, 5)
CLAIMS = {
    BEAM[0]: [*BALL, *HOUSE, claim("colors", "black", 7, true="white"), LEFT],
    RERANKED[0]: [*BALL, *HOUSE, claim("colors", "white", 7), LEFT],
    **{text: [claim("objects", text.split()[1], 1), claim("counts", "one", 0)] for text in (BEAM[3], BEAM[5])},
    BEAM[1]: [claim("objects", "ball", 3), claim("counts", "two", 0), claim("sizes", "large", 1)],
    BEAM[2]: [claim("objects", "fish", 2), claim("counts", "one", 0), claim("colors", "black", 1)],
    BEAM[4]: [claim("objects", "star", 1), claim("counts", "one", 0, true="three")],
}
CIDER = {"greedy": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0), "beam": (1.0, 2.0, 3.0, 0.5, 0.25, 4.0)}
CIDER["reranked"] = (3.5, *CIDER["beam"][1:])
GRID = (2, 3)
IMAGES = len(TRUTH)
IDS = [*(f"i{number}" for number in range(IMAGES - 1)), "=i/<b>5 &#%\"'"]
"""Of the test split."""


def write_experiment(folder: Path, shade: int = 0) -> Path:
    """Write ``folder`` as ``results/NAME``. Its seventh image is not of the test split.

    Args:
        shade: of the pictures; another one makes other pictures.
    """
    data = folder / "data"
    data.mkdir(parents=True)
    truths = dict(zip([*IDS, "train"], [*TRUTH, "a train"], strict=True))
    files = {image: f"{number}.png" for number, image in enumerate(truths)}
    for number, name in enumerate(files.values()):
        Image.new("RGB", (60, 40), (40 * number % 256, 120, shade)).save(data / name)
    captions = [(image, "en", f"{start}{truth}.") for image, truth in truths.items() for start in ("", "there is ")]
    splits = dict.fromkeys(IDS, "test") | {"train": "train"}
    write_data_set(data, splits, captions, "scenes", files=files.__getitem__)
    for decoding, written in (("greedy", BEAM), ("beam", BEAM), ("reranked", RERANKED)):
        _write_system(folder, IDS, decoding, written)
    beam, reranked = ({"model": "attention", "decoding": name, "protocol": ""} for name in ("beam", "reranked"))
    content = {"dataset": "scenes", "split": "test", "images": IMAGES, "changed": 1, "before": beam, "after": reranked}
    comparison = folder / "comparisons/attention/reranked/test/comparison.json"
    write_comparison(comparison, {**content, "metrics": {}, "protocol": ""})
    words = [len(text.split()) for text in BEAM]
    weights = np.zeros((sum(words), GRID[0] * GRID[1]))
    weights[:, 5] = 0.75  # All words look at the lower right, a little at the upper left.
    weights[:, 0] = 0.25
    offsets = np.concatenate(([0], np.cumsum(words)))
    attention = folder / "captions/attention/beam/test/attention.npz"
    write_attention(attention, AttentionTable(weights.astype(np.float16), offsets, np.arange(IMAGES), GRID))
    _write_space(folder)
    return folder


def embed(number: int, model: str, texts: Sequence[str]) -> NDArray[np.float32]:
    """As a retriever might: captions are near to their images, but "a star" of image 4 is nearer to image 0."""
    assert (number, model) == (0, "dual")
    images = np.eye(IMAGES, dtype=np.float32)
    owner = {text: image for written in (BEAM, RERANKED) for image, text in enumerate(written)}
    nearer = {text: 0 if text == "a star" else image for text, image in owner.items()}
    return np.stack([0.8 * images[nearer[text]] + 0.6 * images[owner[text] - (text != "a star")] for text in texts])


def _write_system(folder: Path, ids: list[str], decoding: str, written: tuple[str, ...]) -> None:
    captioned = []
    for image, text in zip(ids, written, strict=True):
        texts = [text] if decoding == "greedy" else [text, "a thing"]
        captioned.append((image, [candidate(each, float(np.log(0.5)), cosine=0.25) for each in texts]))
    captions = folder / f"captions/attention/{decoding}/test"
    write_captions(captions / "captions.json", captioned)
    write_claims(captions / "claims.json", {image: CLAIMS[text] for image, text in zip(ids, written, strict=True)})
    metrics = folder / f"metrics/attention/{decoding}/test"
    table = {"image_id": ids, "caption": written, "tokens": written, "cider": CIDER[decoding]}
    write_per_image(metrics / "per_image.parquet", pd.DataFrame(table))
    score = {"value": float(np.mean(CIDER[decoding])), "low": None, "high": None, "n": IMAGES}
    names = {"dataset": "scenes", "split": "test", "model": "attention", "decoding": decoding, "protocol": ""}
    write_metrics(metrics / "metrics.json", metrics={"cider": score}, **names)
    write_metrics(metrics / "claims.json", metrics={"claims_true": {**score, "value": 0.5}}, **names)


def _write_space(folder: Path) -> None:
    """Images are the axes. The captions of image 1 are nearer to image 0; all others to their own."""
    images = np.eye(IMAGES, dtype=np.float32)
    owner = np.repeat(np.arange(IMAGES), 2)
    captions = 0.8 * images[owner] + 0.6 * images[(owner + 1) % IMAGES]
    captions[2:4] = 0.6 * images[1] + 0.8 * images[0]
    embedded = embeddings_of(images, captions, owner)
    write_embeddings(folder / "embeddings/dual/test/embeddings.npz", embedded)
    ranks = folder / "metrics/retrieval/dual/test"
    found = rank_matches(images, captions, owner)
    RankFile(found, embedded.image_row, embedded.caption_row, embedded.caption_image).write(ranks / "ranks.npz")
    score = {"value": 0.5, "low": None, "high": None, "n": IMAGES}
    names = {"dataset": "scenes", "split": "test", "model": "dual", "decoding": "", "protocol": ""}
    write_metrics(ranks / "metrics.json", metrics={"i2t_recall_1": score}, **names)


def read_results(folder: Path) -> Results:
    """The results as ``vitcapr explore`` reads them."""
    return read_experiment(folder, "test")
