import json
import os
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from vitcapr.cli import features
from vitcapr.errors import UserError


def run(*arguments: object) -> str:
    done = CliRunner().invoke(features.main, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_info_says_what_and_from_where(experiment: Any) -> None:
    output = run("info", experiment.run().manifest_path)
    for expected in ("noise-vit", "2 x 2", "11, 0_ä ... 10_ä", "11 x 4 x 8 float16, 704 B in 3 chunks", "bilinear"):
        assert expected in output


def test_verify_finds_one_changed_bit_and_extraction_repairs_it(experiment: Any) -> None:
    store = experiment.run()
    assert "7 chunks" in run("verify", store.manifest_path)
    path = store["patches"].chunk_path(1)
    content = path.read_bytes()
    path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    with pytest.raises(UserError, match=r"1 of 7 chunks are damaged .*--delete"):
        run("verify", store.manifest_path)
    assert path.is_file()
    with pytest.raises(UserError, match="they were deleted; run snakemake --forcerun extract"):
        run("verify", store.manifest_path.parent, "--delete")
    assert not path.exists()
    experiment.run()
    assert path.read_bytes() == content
    run("verify", store.manifest_path)


def test_exports_hold_the_same_numbers(experiment: Any, tmp_path: Path) -> None:
    store = experiment.run()
    run("export", store.manifest_path, "--to", "h5", "-o", tmp_path / "f.h5")
    run("export", store.manifest_path, "--to", "npz", "--output", tmp_path / "f.npz")
    with h5py.File(tmp_path / "f.h5") as h5, np.load(tmp_path / "f.npz", allow_pickle=False) as npz:
        for name, array in store.items():
            np.testing.assert_array_equal(h5[name][:], array[:])
            np.testing.assert_array_equal(npz[name], array[:])
            assert h5[name].dtype == npz[name].dtype == np.float16
        assert [value.decode() for value in h5["image_id"][:]] == npz["image_id"].tolist() == store.image_ids
        assert json.loads(str(npz["attributes"])) == store.attributes
        assert h5.attrs["grid"].tolist() == [2, 2]
        assert json.loads(h5.attrs["preprocessing"]) == store.attributes["preprocessing"]


def test_gc_deletes_only_what_nothing_refers_to(experiment: Any) -> None:
    results = experiment.root / "results"
    kept = experiment.run("a").path.parent
    begun = experiment.extract("b", 0, 2, store_dtype="float32")
    replaced = experiment.run("c", code="old").path.parent
    experiment.run("c", code="new")
    assert "left alone" in run("gc", "--results", results, "--yes")
    hour_ago = time.time() - 7200
    for path in [replaced, *replaced.rglob("*")]:
        os.utime(path, (hour_ago, hour_ago))
    output = run("gc", "--results", results)
    assert (replaced.name in output, kept.name in output, "3 chunks" in output) == (True, False, True)
    assert replaced.is_dir()
    assert "deleted" in run("gc", "--results", results, "--yes")
    assert not replaced.exists()
    assert len(list((results / "stores").iterdir())) == 3
    assert "in use" in run("gc", "--results", results)
    begun.write_text("{}")
    with pytest.raises(UserError, match="not a part"):
        run("gc", "--results", results)
