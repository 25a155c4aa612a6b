import json
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

from tests.checkpoints import run_features
from tests.commands.stores import write_store
from vitcapr.errors import UserError
from vitcapr.pipeline.run import run_stage
from vitcapr.stages.feature_statistics import feature_statistics
from vitcapr.store import statistics as module
from vitcapr.store.reader import open_features

IMAGES, PATCHES, WIDTH = 150, 3, 6


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    """Far from zero, one dimension dead, and two images almost alike."""
    draw = np.random.default_rng(0)
    patches = (draw.normal(size=(IMAGES, PATCHES, WIDTH)) * np.arange(1, WIDTH + 1) + 50).astype(np.float32)
    patches[:, :, 2] = 7
    cls = draw.normal(size=(IMAGES, WIDTH)).astype(np.float32)
    cls[140] = 3 * cls[17]
    return {"patches": patches, "cls": cls}


@pytest.fixture
def sealed(tmp_path: Path, arrays: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "_SPAN_BYTES", 1)
    monkeypatch.setattr(module, "_PAIR_ROWS", 40)
    return write_store(tmp_path, arrays, [f"i{row}" for row in range(IMAGES)], backbone="noise")


def check(path: Path, arrays: dict[str, np.ndarray], nearest: int) -> None:
    """Against NumPy over the whole array in memory."""
    found = json.loads(path.read_text())["arrays"]
    for name, array in arrays.items():
        vectors = array.reshape(-1, WIDTH).astype(np.float64)
        got = found[name]
        assert got["vectors"] == len(vectors)
        np.testing.assert_allclose(got["mean_of_each"], vectors.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(got["variance_of_each"], vectors.var(axis=0), rtol=1e-9, atol=1e-12)
        spectrum = np.linalg.svd(vectors - vectors.mean(axis=0), compute_uv=False) ** 2
        np.testing.assert_allclose(got["explained"], spectrum / spectrum.sum(), atol=1e-9)
        lengths = np.linalg.norm(vectors, axis=1)
        np.testing.assert_allclose(list(got["norm"].values()), np.quantile(lengths, module._QUANTILES), rtol=1e-6)
        assert got["dead"] == ([2] if name == "patches" else [])
        unit = array.mean(axis=1) if array.ndim == 3 else array
        unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
        cosine = np.triu(unit @ unit.T, 1)
        assert [pair[2] for pair in got["nearest"]] == pytest.approx(
            np.sort(cosine, axis=None)[::-1][:nearest], abs=1e-6
        )
    assert found["cls"]["nearest"][0][:2] == ["i17", "i140"]


def test_statistics_are_those_of_numpy(sealed: Path, arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    output = run_features("stats", sealed, "--duplicates", 3, "-o", tmp_path / "s.json")
    check(tmp_path / "s.json", arrays, 3)
    lines = [line.split() for line in output.splitlines()]
    found = json.loads((tmp_path / "s.json").read_text())["arrays"]["patches"]
    (row,) = (line for line in lines if line[:4] == ["noise", "patches", "450", "6"])
    assert row[8:10] == [str(found["components_90"]), str(found["components_99"])]
    assert ["noise", "cls", "1.0000", "i17", "i140"] in lines


def test_the_stage_writes_all_stores_and_a_page(sealed: Path, arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    run_stage(
        feature_statistics,
        sealed={"features/a": sealed, "text_features/b": sealed},
        statistics=tmp_path / "statistics.json",
        table=[tmp_path / "page.md"],
    )
    found = json.loads((tmp_path / "statistics.json").read_text())
    for store in ("features/a", "text_features/b"):
        (tmp_path / "one.json").write_text(json.dumps({"arrays": found[store]}))
        check(tmp_path / "one.json", arrays, 10)
    page = (tmp_path / "page.md").read_text()
    assert f"| features/a | patches | 450 | 6 | {arrays['patches'].mean():.4f} |" in page
    assert "| text_features/b | cls | 1.0000 | i17 | i140 |" in page


def test_of_a_large_store_a_sample_is_compared(
    sealed: Path, arrays: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_COMPARED", 50)
    rows = np.sort(np.random.default_rng(0).choice(IMAGES, 25, replace=False))
    unit = arrays["cls"] / np.linalg.norm(arrays["cls"], axis=1, keepdims=True)
    expected = np.sort(np.triu(unit[rows] @ unit[rows].T, 1), axis=None)[::-1][:5]
    with open_features(sealed) as store:
        found = module.statistics(store, "cls", 5)
        assert found["sampled"] == 25
        assert "among 25 rows drawn at random" in module.statistics_tables({"a": {"cls": found}})[1].caption
        nearest = found["nearest"]
        assert [cosine for _, _, cosine in nearest] == pytest.approx(expected, abs=1e-6)
        assert {name for first, second, _ in nearest for name in (first, second)} <= {store.ids[row] for row in rows}


def test_a_number_that_is_not_finite_is_one_line(sealed: Path) -> None:
    with open_features(sealed) as store:
        path = store["cls"].chunk_path(0)
        values = np.fromfile(path, "<f4").reshape(-1, WIDTH)
        values[7, 1] = np.nan
        values.tofile(path)
        with pytest.raises(UserError, match="the numbers of 'i7' in 'cls' are not finite"):
            module.statistics(store, "cls")


def test_workers_of_a_cluster_compute_the_same(sealed: Path, arrays: dict[str, np.ndarray], tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="pip install 'vitcapr[distributed]'")
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**options, protocol="tcp://", host="127.0.0.1") as cluster:
        run_features(
            "stats", sealed, "--duplicates", 3, "--scheduler", cluster.scheduler_address, "-o", tmp_path / "s.json"
        )
    check(tmp_path / "s.json", arrays, 3)


def test_mistakes_are_one_line(sealed: Path) -> None:
    with pytest.raises(UserError, match=r"no 'clz', only cls, patches"):
        run_features("stats", sealed, "--arrays", "clz")
    with pytest.raises(UserError, match=r"no scheduler answers there|distributed is not installed"):
        run_features("stats", sealed, "--scheduler", "fast://")
    assert int(da.ones(4, dtype=int).sum().compute()) == 4  # No client of a scheduler that is none is left.
