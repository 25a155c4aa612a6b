"""Each family against an oracle: scikit-learn, SciPy or a loop written out."""

from collections.abc import Callable

import calibrated_similarity
import numpy as np
import pytest
import torch
from sklearn.cross_decomposition import CCA
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from vitcapr.extensions.alignment.closed_forms import (
    Pairs,
    asif,
    canonical,
    canonical_cosine,
    coefficients,
    fit_cca,
    fit_csa,
    procrustes,
    relative,
    ridge_both_ways,
    weighted_cosine,
)
from vitcapr.extensions.alignment.heads import HEADS, configured, start_from_cca
from vitcapr.extensions.alignment.settings import FAMILIES as NAMES
from vitcapr.extensions.alignment.similarity import (
    calibrate,
    linear_cka,
    local_cka,
    mutual_neighbours,
    similarity,
)
from vitcapr.extensions.alignment.study import FAMILIES, choose, embedded, retrieval_measures
from vitcapr.models.dual_encoder_model import build_dual_encoder
from vitcapr.training.retriever import architecture_of

Array = np.ndarray


def views(n: int, images: int, texts: int, seed: int = 0, noise: float = 0.5) -> tuple[Array, Array]:
    """Two noisy linear views of four common causes."""
    draw = np.random.default_rng(seed)
    cause = draw.normal(size=(n, 4))
    x = cause @ draw.normal(size=(4, images)) + noise * draw.normal(size=(n, images)) + 1
    y = cause @ draw.normal(size=(4, texts)) + noise * draw.normal(size=(n, texts)) - 2
    return x.astype(np.float32), y.astype(np.float32)


def pairs_of(images: int, each: int, seed: int) -> Pairs:
    """``each`` texts an image, all from one model of the two views."""
    draw = np.random.default_rng(99)
    to_image, to_text = draw.normal(size=(6, 10)), draw.normal(size=(6, 8))
    draw = np.random.default_rng(seed)
    cause = draw.normal(size=(images, 6))
    owner = np.repeat(np.arange(images), each)
    x = cause @ to_image + 0.1 * draw.normal(size=(images, 10))
    y = cause[owner] @ to_text + 0.1 * draw.normal(size=(images * each, 8))
    return Pairs(x.astype(np.float32), y.astype(np.float32), owner)


def test_canonical_correlations_are_those_of_scikit_learn() -> None:
    x, y = views(400, 7, 5)
    found = canonical(x, y, 1e-9)
    oracle = CCA(n_components=4, max_iter=10_000, tol=1e-12).fit(x, y)
    of_x, of_y = oracle.transform(x, y)
    expected = [np.corrcoef(of_x[:, i], of_y[:, i])[0, 1] for i in range(4)]
    np.testing.assert_allclose(found.correlations[:4], expected, atol=1e-4)
    of_x, of_y = found.image_variates(x), found.text_variates(y)
    np.testing.assert_allclose(of_x.T @ of_x / len(x), np.eye(5), atol=1e-5)
    np.testing.assert_allclose(of_x.T @ of_y / len(x), np.diag(found.correlations), atol=1e-5)


def test_the_scores_of_cca_and_csa_are_their_formulas() -> None:
    x, y = views(300, 6, 9)
    found = canonical(x, y, 0.01)
    a = (x - x.mean(0)) @ found.image_directions
    b = (y - y.mean(0)) @ found.text_directions
    rho = found.correlations
    alignment = canonical_cosine(found, 2.0)
    np.testing.assert_allclose(
        alignment.images(x) @ alignment.texts(y).T, cosine_similarity(a * rho**2, b * rho**2), atol=1e-4
    )
    alignment = weighted_cosine(found, 3)
    expected = (normalize(a[:, :3]) * rho[:3]) @ normalize(b[:, :3]).T
    np.testing.assert_allclose(alignment.images(x) @ alignment.texts(y).T, expected, atol=1e-4)


def test_ridge_is_that_of_scikit_learn() -> None:
    x, y = views(200, 6, 4)
    centred = (x - x.mean(0)).astype(np.float64)
    penalty = 0.3 * np.trace(centred.T @ centred) / 6
    oracle = Ridge(alpha=penalty).fit(x.astype(np.float64), y)
    np.testing.assert_allclose(coefficients(centred, y - y.mean(0), 0.3), oracle.coef_.T, atol=1e-5)
    back = Ridge(alpha=0.3 * np.square(y - y.mean(0)).sum() / 4).fit(y.astype(np.float64), x)
    alignment = ridge_both_ways(x, y, 0.3)
    expected = cosine_similarity(oracle.predict(x) - y.mean(0), y - y.mean(0)) + cosine_similarity(
        x - x.mean(0), back.predict(y) - x.mean(0)
    )
    np.testing.assert_allclose(alignment.images(x) @ alignment.texts(y).T, expected, atol=1e-4)


@pytest.mark.parametrize("swapped", [False, True])
def test_procrustes_finds_the_rotation_of_the_narrower_side(swapped: bool) -> None:
    draw = np.random.default_rng(1)
    turn = np.linalg.qr(draw.normal(size=(6, 6)))[0][:, :4]
    narrow = draw.normal(size=(50, 4))
    narrow -= narrow.mean(0)
    sides = (narrow @ turn.T).astype(np.float32), narrow.astype(np.float32)
    alignment = procrustes(*sides[:: -1 if swapped else 1])
    x, y = sides[:: -1 if swapped else 1]
    np.testing.assert_allclose(np.diag(alignment.images(x) @ alignment.texts(y).T), 1, atol=1e-5)


def test_asif_is_its_loop() -> None:
    x, y = views(40, 6, 5)
    new_x, new_y = views(7, 6, 5, seed=3)

    def described(row: Array, anchors: Array) -> Array:
        near = [max(0.0, float(row @ anchor) / np.linalg.norm(row) / np.linalg.norm(anchor)) for anchor in anchors]
        largest = sorted(range(len(near)), key=lambda place: -near[place])[:9]
        kept = np.array([near[place] ** 4 if place in largest else 0.0 for place in range(len(near))])
        return kept / np.linalg.norm(kept)

    expected = [[described(a, x) @ described(b, y) for b in new_y] for a in new_x]
    alignment = asif(x, y, kept=9, power=4)
    np.testing.assert_allclose(alignment.images(new_x) @ alignment.texts(new_y).T, expected, atol=1e-5)
    assert (np.count_nonzero(relative(new_x, x, 9, 1), axis=1) <= 9).all()


def test_cka_is_the_ratio_of_kernels() -> None:
    x, y = views(60, 6, 5)
    centre = np.eye(60) - 1 / 60
    k, m = centre @ x @ x.T @ centre, centre @ y @ y.T @ centre
    expected = np.trace(k @ m) / np.sqrt(np.trace(k @ k) * np.trace(m @ m))
    assert linear_cka(x, y) == pytest.approx(expected, rel=1e-4)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    assert linear_cka(x, (3 * x @ turn + 1).astype(np.float32)) == pytest.approx(1, abs=1e-5)


def test_local_cka_is_the_cka_with_the_pair_added() -> None:
    x, y = views(30, 6, 5)
    new_x, new_y = views(4, 6, 5, seed=3)
    alignment = local_cka(x, y)
    expected = [[linear_cka(np.vstack([x, a]), np.vstack([y, b])) for b in new_y] for a in new_x]
    np.testing.assert_allclose(alignment.images(new_x) @ alignment.texts(new_y).T, expected, rtol=1e-4)


def test_mutual_neighbours_are_the_shared_ones() -> None:
    x, y = views(40, 6, 5)
    orders = [np.arange(40), np.random.default_rng(0).permutation(40)]
    expected = []
    for order in orders:
        neighbours = (NearestNeighbors(n_neighbors=3, metric="cosine").fit(rows) for rows in (x, y[order]))
        near = (index.kneighbors(return_distance=False) for index in neighbours)
        expected.append(np.mean([np.isin(*both).sum() / 3 for both in zip(*near, strict=True)]))
    assert mutual_neighbours(x, y, 3, orders) == pytest.approx(expected)
    assert mutual_neighbours(x, 2 * x, 3, orders[:1]) == 1


@pytest.mark.parametrize("related", [True, False])
def test_calibration_equals_the_package_of_the_paper(related: bool) -> None:
    x, y = views(60, 6, 5)
    random = np.random.default_rng(1)
    x = x if related else random.normal(size=x.shape)
    orders = [random.permutation(60) for _ in range(39)]

    def oracle(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        near = []
        for rows in (a, b):
            cosine = torch.nn.functional.normalize(rows) @ torch.nn.functional.normalize(rows).T
            near.append(torch.zeros(60, 60).scatter(1, cosine.fill_diagonal_(-2).topk(5).indices, 1.0))
        return (near[0] * near[1]).sum() / 300

    shared = mutual_neighbours(x, y, 5, [np.arange(60), *orders])
    permuted = iter(orders)
    expected = calibrated_similarity.calibrate(
        *map(torch.from_numpy, (x, y)), oracle, K=39, perm_fn=lambda *_: torch.from_numpy(next(permuted))
    )
    assert calibrate(shared[0], shared[1:]) == pytest.approx(tuple(map(float, expected)), abs=1e-6)
    assert (calibrate(shared[0], shared[1:])[0] > 0) == related


def test_a_pair_of_encoders_that_see_the_same_is_alike() -> None:
    base, held_out = pairs_of(200, 1, seed=0), pairs_of(40, 2, seed=1)
    alike = similarity(base, held_out)
    unlike = similarity(base, Pairs(held_out.images, held_out.texts[::-1].copy(), held_out.caption_image))
    assert alike["matched"] > unlike["matched"] + 0.3
    assert 0.3 < alike["mutual_knn"] <= 1
    assert alike["p_value"] == 1 / 201
    assert 0 < alike["cka"] < 1


def test_the_configuration_names_every_family() -> None:
    assert set(FAMILIES) == set(NAMES)


# Of the trained heads: a plain one, and several that start from CCA. The others differ in their settings.
@pytest.mark.parametrize("name", sorted(FAMILIES.keys() - HEADS.keys() | {"linear", "cca_heads"}))
def test_every_family_beats_chance_on_held_out_pairs(name: str) -> None:
    train, validation, test = pairs_of(120, 2, 0), pairs_of(30, 2, 1), pairs_of(50, 2, 2)
    chosen = choose(FAMILIES[name], train, validation, seed=0)
    found = retrieval_measures(embedded(chosen.alignment, test))
    assert found["i2t_recall_10"].value > 0.4
    assert found["t2i_recall_10"].value > 0.4
    assert chosen.cpu_seconds > 0
    assert 0 < chosen.validation_rsum <= 600


@pytest.mark.parametrize("fit", [fit_cca, fit_csa])
def test_the_validation_pairs_choose(fit: Callable[..., object]) -> None:
    train, validation = pairs_of(120, 2, 0), pairs_of(30, 2, 1)
    candidates = list(fit(train, validation, 0))  # type: ignore[call-overload]
    best = max(candidates, key=lambda one: retrieval_measures(embedded(one.alignment, validation))["rsum"].value)
    assert choose(fit, train, validation, 0).settings == best.settings  # type: ignore[arg-type]


@pytest.mark.parametrize("name", HEADS)
def test_few_pairs_train_as_many_steps(name: str) -> None:
    for images in (64, 100, 1000, 4000):
        phase = configured(HEADS[name], images).training.phases[0]
        assert phase.epochs * -(-images // phase.batch_images) >= 75


def test_a_head_from_cca_starts_with_its_scores() -> None:
    """A head normalises its input, which takes one dimension out: the scores are nearly those of CCA."""
    draw = np.random.default_rng(0)
    cause = draw.normal(size=(500, 20))
    x, y = (np.float32(cause @ draw.normal(size=(20, n)) + 0.3 * draw.normal(size=(500, n))) for n in (48, 40))
    pairs = Pairs(x, y, np.arange(500))
    architecture = architecture_of(configured(HEADS["cca_head"], 500), {"feature_dim": 48}, text_dim=40)
    encoder = build_dual_encoder(architecture | {"embedding_dim": 40}).eval()
    for tower, rows in ((encoder.image, x), (encoder.text, y)):
        tower.standardise.measure([torch.from_numpy(rows)])  # type: ignore[union-attr, operator]
    start_from_cca(pairs, encoder)
    with torch.no_grad():
        images = encoder.embed_images({"cls": torch.from_numpy(x)}).numpy()
        found = images @ encoder.embed_texts(torch.from_numpy(y)).numpy().T
    alignment = canonical_cosine(canonical(x, y, 1.0), 1.0)
    expected = alignment.images(x) @ alignment.texts(y).T
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.98
