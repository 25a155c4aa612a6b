"""What a status says of stores that are gone, and of jobs."""

import json
from pathlib import Path

import numpy as np

from tests.commands.stores import write_store
from vitcapr.commands.status import RESTORED, RUNS_NOW, describe
from vitcapr.store.check import lost_stores


def test_a_store_that_was_deleted_is_named_with_the_rules_that_make_it_again(tmp_path: Path) -> None:
    sealed = write_store(
        tmp_path, {"cls": np.ones((2, 3), np.float16)}, ["a", "b"], sealed="a/features/vit/manifest.json"
    )
    assert list(lost_stores(tmp_path / "a")) == []
    (tmp_path / "stores").rename(tmp_path / "elsewhere")
    assert list(lost_stores(tmp_path / "a")) == [(sealed, "")]  # no rule makes an imported one
    content = json.loads(sealed.read_text())
    del content["attributes"]["imported"]
    sealed.write_text(json.dumps(content))
    assert list(lost_stores(tmp_path / "a")) == [(sealed, "--forcerun extract --until seal")]


def test_jobs_with_reasons_are_listed_and_the_others_counted() -> None:
    whole = "2 of 3 chunks are in results/stores/ab"
    decode = ("decode a/beam", ["rate 1 -> 2", "was interrupted"], RESTORED)
    jobs = [("data", [RUNS_NOW], ""), decode, ("score", [], RESTORED), ("extract vit/0", [], whole)]
    assert "\n".join(describe("demo", jobs, 2)).splitlines() == [
        *("demo: 4 jobs to run", "", "  data           runs now", "  decode a/beam  rate 1 -> 2; was interrupted", ""),
        *("and 2 that follow from these (snakemake --dry-run lists them)", ""),
        *("restored from the result cache, with --cores 2: decode a/beam, score", ""),
        *(f"extract vit/0: {whole}", ""),
        "Snakemake runs here. If it does not, it was killed: snakemake --unlock",
    ]
    assert list(describe("demo", [], 2)) == ["demo: everything is up to date"]
