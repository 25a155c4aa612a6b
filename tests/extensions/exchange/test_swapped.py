"""Rows that were exchanged are named by a second store of the same images."""

from pathlib import Path

import numpy as np
import pytest

from tests.commands.stores import write_store
from tests.data_sets import write_data_set
from vitcapr.extensions.exchange.commands import features
from vitcapr.extensions.exchange.swapped import resemblance

NAMES = [f"{row:03}.jpg" for row in range(240)]


def layers() -> tuple[np.ndarray, np.ndarray]:
    drawn = np.random.default_rng(0)
    cause = drawn.normal(size=(len(NAMES), 12))
    one, other = (cause @ drawn.normal(size=(12, width)) for width in (16, 20))
    return one + 0.3 * drawn.normal(size=one.shape), other + 0.3 * drawn.normal(size=other.shape)


def test_exchanged_rows_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = layers()
    assert not len(resemblance(one, other).odd)
    one[[7, 90]] = one[[90, 7]]
    compared = resemblance(one, other)
    assert set(compared.odd) == {7, 90}
    data = write_data_set(tmp_path / "data", dict.fromkeys(NAMES, "train"), [(name, "en", "a") for name in NAMES])
    write_store(tmp_path / "one", {"cls": one.astype(np.float32)}, NAMES)
    write_store(tmp_path / "other", {"cls": other.astype(np.float32)}, NAMES)
    features.audit_store(tmp_path / "one/sealed", data, second=tmp_path / "other/sealed")
    printed = capsys.readouterr().out
    assert "'cls' and the second store: 2 of 240 rows resemble other images more" in printed
    assert "'007.jpg' should resemble" in printed
