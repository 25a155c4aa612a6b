"""Content decides what belongs together: verdicts on inputs whose truth is known."""

import numpy as np
import pytest

from vitcapr import joints

ROWS = 200
IDS = [f"{row}.jpg" for row in range(ROWS)]


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    """Smooth random pictures: (200, 32, 32, 3) uint8."""
    small = np.random.default_rng(0).integers(0, 255, (ROWS, 8, 8, 3)).astype(np.uint8)
    return small.repeat(4, axis=1).repeat(4, axis=2)


@pytest.fixture(scope="module")
def patches(pictures: np.ndarray) -> np.ndarray:
    """A random linear map of each place, with noise and a part that is the same in the whole picture."""
    drawn = np.random.default_rng(1)
    colours = joints.colours_of(pictures)(8, 8).reshape(ROWS, 64, 3)
    whole = pictures.reshape(ROWS, -1) @ drawn.normal(size=(3072, 12)) / 3e3
    noise = drawn.normal(size=(ROWS, 64, 12)) * 0.2
    return (colours @ drawn.normal(size=(3, 12)) + whole[:, None] + noise).astype(np.float32)


def rows_verdict(pictures: np.ndarray, vectors: np.ndarray, count: int = ROWS) -> joints.Verdict:
    rows, orders = np.arange(count), joints.row_orders(IDS[:count])
    return joints.related(
        "joint", joints.photograph_inputs(pictures[:count]), vectors, rows, orders, count >= joints.LEAST_ROWS
    )


BY_NAME = np.array(sorted(range(ROWS), key=lambda row: IDS[row]))


@pytest.mark.parametrize(
    ("order", "outcome", "fits"),
    [
        (np.arange(ROWS), "belongs", ""),
        (np.roll(np.arange(ROWS), 1), "wrong", "they fit shifted by one"),
        (np.arange(ROWS)[::-1], "wrong", "they fit reversed"),
        (BY_NAME, "wrong", "they fit sorted by name"),
        (np.argsort(BY_NAME), "wrong", "they fit the given order, for rows sorted by name"),
        (np.random.default_rng(2).permutation(ROWS), "wrong", "no better than chance"),
    ],
)
def test_order_of_the_rows(
    pictures: np.ndarray, patches: np.ndarray, order: np.ndarray, outcome: str, fits: str
) -> None:
    verdict = rows_verdict(pictures, patches[order])
    assert verdict.outcome == outcome
    assert fits in str(verdict)


def test_too_little_to_decide(pictures: np.ndarray, patches: np.ndarray) -> None:
    few = rows_verdict(pictures[:40], patches[np.random.default_rng(0).permutation(40)], 40)
    assert (few.outcome, few.rows) == ("undecided", 40)
    assert rows_verdict(pictures, np.ones((ROWS, 8))).outcome == "undecided"
    assert rows_verdict(np.zeros_like(pictures), patches).outcome == "undecided"


def test_wide_vectors_of_noise_that_show_little_of_the_photographs(pictures: np.ndarray, patches: np.ndarray) -> None:
    whole = patches.mean(axis=1)
    noise = np.random.default_rng(0).normal(size=(ROWS, 768)) * 0.1
    wide = np.hstack([(whole - whole.mean(axis=0)) / whole.std(axis=0), noise])
    assert 6 < rows_verdict(pictures, wide).strength < 40


@pytest.mark.parametrize(
    ("change", "fits"),
    [
        (lambda p: p, None),
        (lambda p: p.reshape(-1, 8, 8, 12).swapaxes(1, 2).reshape(p.shape), "the transposed grid"),
        (lambda p: p.reshape(-1, 8, 8, 12)[:, :, ::-1].reshape(p.shape), "the grid mirrored from left to right"),
        (lambda p: np.roll(p, 1, axis=1), "tokens shifted by one"),
        (lambda p: np.concatenate([p[:, :1], p], axis=1), "the first token dropped"),
        (lambda p: p.swapaxes(1, 2), "channels first"),
        (lambda p: p[:, np.random.default_rng(0).permutation(64)], "no better than chance"),
    ],
)
def test_places_of_patches(pictures: np.ndarray, patches: np.ndarray, change, fits: str | None) -> None:  # type: ignore[no-untyped-def]
    values = change(patches[:40])
    for grid in [(8, 8), (0, 0)] if values.shape[1] == 64 else [(0, 0)]:
        verdict = joints.places("joint", values, [joints.colours_of(pictures[:40])], grid, powered=True)
        unsure = grid == (0, 0) and fits == "no better than chance"
        assert verdict.outcome == ("undecided" if unsure else "wrong" if fits else "belongs")
        assert unsure or fits is None or fits in str(verdict)


@pytest.mark.parametrize(("count", "outcome"), [(15, "undecided"), (16, "wrong")])
def test_few_images_do_not_decide_places(pictures: np.ndarray, patches: np.ndarray, count: int, outcome: str) -> None:
    shifted, colours = np.roll(patches[:count], 1, axis=1), joints.colours_of(pictures[:count])
    assert joints.places("joint", shifted, [colours], (8, 8), True).outcome == outcome


def test_pairs_of_embeddings() -> None:
    drawn = np.random.default_rng(0)
    images = drawn.normal(size=(120, 16))
    texts = images + drawn.normal(size=images.shape)
    rows, shuffled = np.arange(120), drawn.permutation(120)
    orders = {joints.GIVEN: rows, **joints.row_orders(IDS[:120])}

    def verdict(texts: np.ndarray, one_space: bool) -> joints.Verdict:
        return joints.paired("joint", lambda order: (texts * images[order]).sum(axis=1), 120, orders, one_space)

    assert joints.one_space(images, texts[shuffled])
    assert not joints.one_space(images, drawn.normal(size=texts.shape))
    assert verdict(texts, True).outcome == "belongs"
    assert "they fit shifted by one" in str(verdict(np.roll(texts, 1, axis=0), False))
    assert verdict(texts[shuffled], True).outcome == "wrong"
    assert verdict(texts[shuffled], False).outcome == "undecided"


def test_bags_of_words() -> None:
    bags = joints.bags_of_words(["a cat", "a dog", "a cat runs"])
    assert np.allclose(bags @ bags.T, [[1, 0, 1], [0, 0, 0], [1, 0, 1]])
