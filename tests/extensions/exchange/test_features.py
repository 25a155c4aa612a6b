import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from tests.checkpoints import flip_bit, run_features, snapshot
from tests.commands.stores import write_store
from tests.data_sets import write_data_set
from vitcapr.commands import gc
from vitcapr.errors import UserError
from vitcapr.extensions.exchange.commands import features
from vitcapr.extensions.exchange.swapped import resemblance


def test_info_says_licences_and_sources(experiment: Any) -> None:
    (experiment.backbone / "README.md").write_text("---\nlicense: apache-2.0\n---\nA model.\n")
    store = experiment.run(licence="CC BY 4.0\x1b[2J")
    output = run_features("info", store.manifest_path)
    for expected in (
        "11 x 4 x 8 float16, 704 B in 3 chunks",
        "grid [2, 2]",
        "image_id 11, 0_ä ... 10_ä",
        'terms.backbone.licence "apache-2.0"',
        "terms.data.source null",
        r'terms.data.licence "CC BY 4.0\u001b[2J"',
    ):
        assert expected in " ".join(output.split())
    assert store.attributes["terms"] == {
        "backbone": {"licence": "apache-2.0"},
        "data": {"name": "noise", "licence": "CC BY 4.0\x1b[2J", "source": None},
    }
    # Another experiment that goes on with the store leaves its terms alone.
    (store.path.parent / "checksums" / "000001.json").unlink()
    assert experiment.run("b", licence="other").attributes == store.attributes


def test_verify_finds_one_changed_bit_and_extraction_repairs_it(experiment: Any) -> None:
    store = experiment.run()
    assert "7 chunks" in run_features("verify", store.manifest_path)
    path = store["patches"].chunk_path(1)
    content = path.read_bytes()
    flip_bit(path)
    with pytest.raises(UserError, match=r"1 of 7 chunks are damaged .*; delete these files, then run snakemake"):
        run_features("verify", store.manifest_path.parent)
    path.unlink()
    experiment.run()
    assert path.read_bytes() == content
    run_features("verify", store.manifest_path)


def test_damaged_ids_are_found_and_repaired(experiment: Any) -> None:
    store = experiment.run()
    whole = snapshot(store.path.parent)
    ids = store.path / store.identity / "c" / "0" / "0"
    ids.write_bytes(b"x" + ids.read_bytes()[1:])
    with pytest.raises(UserError, match="1 of 7 chunks are damaged"):
        run_features("verify", store.manifest_path)
    experiment.run()
    assert snapshot(store.path.parent) == whole


def test_names_steer_no_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "a\x1b[2J\x9b\u202e"
    sealed = write_store(folder, {"cls": np.ones((3, 4), np.float16)}, ["a\x1b[31m", "b", "c\u202e"])
    flip_bit(next(folder.glob("stores/*/features.zarr/cls/c/0/0")))
    done = [CliRunner().invoke(features.app, [command, str(sealed)]) for command in ("verify", "info")]
    done.append(CliRunner().invoke(gc.app, ["--results", str(folder)]))
    for each in done:
        assert not set("\x1b\x9b\u202e") & set(each.output + str(each.exception)), each.output
    assert "bad: chunk 0 of cls is damaged" in done[0].stderr
    assert "u001b" in done[0].stderr or "x1b" in done[0].stderr


def test_exports_hold_the_same_numbers(experiment: Any, tmp_path: Path) -> None:
    store = experiment.run()
    (tmp_path / ".f.h5.0123abcd.partial").write_text("what a killed export left")
    run_features("export", store.manifest_path, "--to", "h5", "-o", tmp_path / "f.h5")
    assert not list(tmp_path.glob(".f.h5.*"))
    with h5py.File(tmp_path / "f.h5") as h5:
        for name, array in store.items():
            np.testing.assert_array_equal(h5[name][:], array[:])
            assert h5[name].dtype == np.float16
        assert [value.decode() for value in h5["image_id"][:]] == store.image_ids
        assert h5.attrs["grid"].tolist() == [2, 2]
        assert json.loads(h5.attrs["preprocessing"]) == store.attributes["preprocessing"]


def test_an_h5_export_that_finds_no_room_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = write_store(tmp_path, {"cls": np.ones((100, 32), np.float16)}, [str(row) for row in range(100)])
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=6399))
    with pytest.raises(UserError, match="6,400 bytes are to be written, and 6,399 are free"):
        run_features("export", sealed, "--to", "h5", "-o", tmp_path / "new/f.h5")
    assert not list(tmp_path.rglob("*f.h5*"))


def test_exchanged_rows_are_named_by_a_second_store(tmp_path: Path) -> None:
    names, drawn = [f"{row:03}.jpg" for row in range(240)], np.random.default_rng(0)
    cause = drawn.normal(size=(len(names), 12))
    layers = (cause @ drawn.normal(size=(12, width)) for width in (16, 20))
    one, other = (layer + 0.3 * drawn.normal(size=layer.shape) for layer in layers)
    assert not len(resemblance(one, other).odd)
    one[[7, 90]] = one[[90, 7]]
    compared = resemblance(one, other)
    assert set(compared.odd) == {7, 90}
    data = write_data_set(tmp_path / "data", dict.fromkeys(names, "train"), [(name, "en", "a") for name in names])
    write_store(tmp_path / "one", {"cls": one.astype(np.float32)}, names)
    write_store(tmp_path / "other", {"cls": other.astype(np.float32)}, names)
    printed = run_features("audit", tmp_path / "one/sealed", "--data", data, "--second", tmp_path / "other/sealed")
    assert "'cls' and the second store: 2 of 240 rows resemble other images more" in printed
    assert "'007.jpg' should resemble" in printed
