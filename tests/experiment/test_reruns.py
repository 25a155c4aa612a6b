"""Edits that concern one of several models, job by job; what status says; stores that the DAG keeps or takes.

Edits by rule: test_edits.py.
"""

import base64
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.commands.stores import write_store
from tests.experiment.conftest import rules_of
from tests.plans.dry_runs import commands, options_of
from vitcapr.config.experiment import ExperimentConfig
from vitcapr.experiment.experiment import Experiment
from vitcapr.formats.image_root import read_image_root, write_location

BEAM = "vitcapr/decoding/beam.py"


def test_one_captioners_learning_rate_concerns_only_that_captioner(two: Any) -> None:
    two.configure(captioners__plain__training={"phases": [{"epochs": 10, "learning_rate": 0.5}]})
    scored = ("greedy/test", "beam/test", "reranked/test", "oracle/test")
    assert two.stale_jobs() == {
        "train_captioner plain",
        *(f"decode plain/{captions}" for captions in ("greedy/test", "beam/test", "beam/validation")),
        *("tune_reranking plain/reranked", "rerank plain/reranked/test", "rerank_oracle plain/oracle/test"),
        *(f"{stage} plain/{captions}" for stage in ("score", "check_claims") for captions in scored),
        *(f"compare plain/{captions}" for captions in scored[2:]),
        *(
            "draw_captions test",
            "draw_reranked plain/reranked/test",
            "draw_curves",
            "summary",
            "differences",
            "first_page",
        ),
    }


def test_status_names_the_edited_module_and_the_changed_setting(two: Any) -> None:
    two.append(BEAM, "\nMORE = 1\n")
    two.configure(decodings={"beam": {"beam_size": 6}}, metrics={"bootstrap_samples": 10})
    printed = two.status()
    assert re.match(r"two: \d+ jobs to run\n", printed)
    assert re.search(r"decode attention/beam/test +its code changed \(vitcapr/decoding/beam.py\)", printed)
    assert re.search(r"decode plain/beam/test .*decoding.beam_size 5 -> 6\n", printed)
    assert re.search(r"score_retrieval paper/test +metrics.bootstrap_samples 1000 -> 10\n", printed)
    assert re.search(r"and \d+ that follow from these", printed)


def test_status_names_the_users_changed_files(photographs: Any) -> None:
    photographs.append("photographs/1.jpg", "another")
    printed = photographs.status()
    assert "the content of data.flickr8k.images changed" in printed
    assert re.search(r"^and \d+ that follow", printed, re.MULTILINE)


def test_status_says_what_is_up_to_date_and_which_job_runs(two: Any) -> None:
    """Snakemake marks the outputs of a job that it starts, and locks those of the whole run."""
    assert two.status() == "two: everything is up to date\n"
    summary = "results/two/summary.csv"
    (two.root / summary).unlink()
    marker = two.root / ".snakemake/incomplete" / base64.b64encode(summary.encode(), b"-_").decode()
    marker.write_text('{"external_jobid": null}')
    assert re.search(r"summary +summary.csv is gone\n", two.status())
    (two.root / ".snakemake/locks/0.output.lock").write_text(f"{summary}\n")
    assert re.search(r"summary +runs now\n", two.status())
    assert "snakemake --unlock" in two.status()


def test_the_records_decide_without_snakemakes_metadata(two: Any) -> None:
    """A copy by rsync, git or a zip has no hidden folder, and times of its own."""
    shutil.rmtree(two.root / ".snakemake")
    for path in (two.root / "results").rglob("*"):
        os.utime(path)
    assert two.status() == "two: everything is up to date\n"
    two.configure(captioners__plain__hidden_dim=24)
    changed = two.status()
    assert re.search(r"train_captioner plain +captioner.hidden_dim \d+ -> 24\n", changed)
    two.snakemake("--touch", "--cores", "1")
    assert two.status() == changed


def test_results_that_are_gone_or_changed_are_made_again_though_what_was_made_of_them_stands(two: Any) -> None:
    folder = two.root / "results/two/embeddings"
    (embeddings,) = folder.rglob("paper/test/embeddings.npz")
    embeddings.unlink()
    assert re.search(r"embed paper/test +embeddings.npz is gone\n", two.status())
    embeddings.write_text("another")
    assert re.search(r"embed paper/test +embeddings.npz is not as it was made\n", two.status())
    (two.root / "results/two/runs/vocabulary.json").unlink()
    assert re.search(r"vocabulary +no record says how it was made\n", two.status())


def test_accepted_results_are_up_to_date_and_say_what_differed(two: Any) -> None:
    two.append(BEAM, "\nMORE = 1\n")
    two.configure(captioners__plain__hidden_dim=24)
    (two.root / "results/two/embeddings/paper/test/embeddings.npz").unlink()
    stale, accept = two.status(), ("vitcapr", "accept")
    assert "results can be accepted: repeat with --yes" in two.command(program=accept).stdout
    assert two.status() == stale  # Without --yes nothing changes.
    printed = two.command("--yes", program=accept).stdout
    assert re.search(r"embed paper/test +embeddings.npz is gone +\(not accepted: a file is gone\)", printed)
    left = two.status()
    assert re.search(r"^ +embed paper/test", left, re.MULTILINE)
    assert not re.search(r"^ +(decode|train_captioner)", left, re.MULTILINE)
    assert re.search(r"\d+ results were accepted as they are", left)
    record = json.loads((two.root / "results/two/runs/train_captioner/plain.json").read_text())
    assert re.fullmatch(r"captioner.hidden_dim \d+ -> 24", record["accepted"][0]["differed"][0])
    two.configure(captioners__plain__hidden_dim=16)
    assert re.search(r"train_captioner plain +captioner.hidden_dim 24 -> 16\n", two.status())
    two.configure(run__decodings=["greedy"])
    refused = r"summary +it reads other files than before.* +\(not accepted: no change of code explains that\)"
    assert re.search(refused, two.command("--yes", program=accept).stdout)


def test_the_store_root_comes_from_one_place_and_re_runs_nothing(two: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VITCAPR_STORES", "/group/stores")
    assert two.stale_jobs() == set()
    jobs = two.dry_run("--forceall", "--", "features")
    assert [options_of(jobs, rule)[0]["stores"] for rule in ("extract", "seal")] == ["/group/stores"] * 2
    assert "results/stores" not in commands(jobs)


def test_moved_photographs_are_found_where_the_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data, keys = tmp_path / "results/study/data", {"images": "there/photographs", "captions": "captions.csv"}
    write_location(data, tmp_path / "here")
    values = {"experiment": "study", "data": {"dataset": "table", "table": keys}}
    experiment = Experiment(ExperimentConfig.model_validate(values))
    experiment.locate_images()
    assert read_image_root(data, {}) == tmp_path / "there/photographs"


def test_every_view_of_a_retriever_is_a_store_of_its_own(fresh: Any) -> None:
    values = {
        "backbones": {"mirrored": {"source": "trained", "mirror": True}},
        "captioners": {"attention": {"backbone": "vit"}},
        "retrievers": {"paper": {"backbone": "vit", "augmented_views": ["mirrored"]}},
        "rerankings": {"reranked": {"decoding": "beam", "retriever": "paper"}},
    }
    plan, features = fresh.plan(values), "results/demo/features"
    for rule, option, file in (("extract", "part", "parts/0.json"), ("seal", "sealed", "manifest.json")):
        paths = {each[option] for each in options_of(plan, rule)}
        assert paths == {f"{features}/{name}/{file}" for name in ("vit", "mirrored")}
    for rule in ("train_retriever", "embed", "tune_reranking", "rerank"):
        for each in options_of(plan, rule):
            assert each["features"] == f"{features}/vit/manifest.json"
            assert each["augmented_views"] == [f"{features}/mirrored/manifest.json"]


def test_adopted_stores_are_not_extracted(fresh: Any) -> None:
    patches = {"cls": np.zeros((2, 8), "f2"), "patches": np.zeros((2, 16, 8), "f2")}
    images, captions = f"{'c' * 16}/manifest.json", f"{'e' * 16}/manifest.json"
    write_store(fresh.root / "results", patches, ["a", "b"], sealed=f"stores/{images}", grid=[4, 4])
    text = {"text": np.zeros((2, 8), "f2")}
    write_store(fresh.root / "results", text, ["a", "b"], "caption_id", sealed=f"stores/{captions}")
    values = {
        "backbones": {"vit": {"source": f"store:{'c' * 16}"}},
        "text_encoders": {"bert": {"source": f"store:{'e' * 16}"}},
        "captioners": {"attention": {"backbone": "vit"}},
        "retrievers": {"paper": {"backbone": "vit", "text": {"kind": "features", "encoder": "bert"}}},
    }
    plan = fresh.plan(values)
    rules = rules_of(plan)
    assert rules.isdisjoint({"extract", "extract_text", "seal", "train_backbone"})
    assert "draw_attention" in rules
    (adopt,), (adopt_text,) = options_of(plan, "adopt"), options_of(plan, "adopt_text")
    assert (adopt["store"], adopt_text["store"]) == (f"results/stores/{images}", f"results/stores/{captions}")
    (training,) = options_of(plan, "train_retriever")
    assert adopt_text["sealed"] == training["text_features"] == "results/demo/text_features/bert/manifest.json"
