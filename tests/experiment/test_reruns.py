"""Edits that concern one of several models, job by job; what status says. Edits by rule: test_edits.py."""

import re
from typing import Any

from tests.experiment.edits import ALL

BEAM = "vitcapr/decoding/beam.py"


def test_everything_runs_at_first(fresh: Any) -> None:
    assert fresh.stale_rules() == ALL


def test_one_captioners_learning_rate_concerns_only_that_captioner(two: Any) -> None:
    two.configure(captioners__plain__training={"phases": [{"epochs": 10, "learning_rate": 0.5}]})
    scored = ("greedy/test", "beam/test", "reranked/test", "oracle/test")
    assert two.stale_jobs() == {
        "train_captioner plain",
        *(f"decode plain/{captions}" for captions in ("greedy/test", "beam/test", "beam/validation")),
        *("tune_reranking plain/reranked", "rerank plain/reranked/test", "rerank_oracle plain/oracle/test"),
        *(f"{stage} plain/{captions}" for stage in ("score", "check_claims") for captions in scored),
        *(f"compare plain/{captions}" for captions in scored[2:]),
        *("draw_captions test", "draw_reranked plain/reranked/test", "draw_curves", "summary", "first_page"),
    }


def test_status_names_the_edited_module(two: Any) -> None:
    two.append(BEAM, "\nMORE = 1\n")
    said = two.status()
    assert re.match(r"two: \d+ jobs to run\n", said)
    assert re.search(r"decode attention/beam/test +its code changed \(vitcapr/decoding/beam.py\)\n", said)
    assert re.search(r"and \d+ that follow from these", said)


def test_status_names_the_changed_setting(two: Any) -> None:
    two.configure(decodings={"beam": {"beam_size": 6}}, metrics={"bootstrap_samples": 10})
    said = two.status()
    assert re.search(r"decode plain/beam/test +decoding.beam_size 5 -> 6\n", said)
    assert re.search(r"score plain/greedy/test +metrics.bootstrap_samples 1000 -> 10\n", said)


def test_status_names_the_users_changed_files(photographs: Any) -> None:
    photographs.append("photographs/1.jpg", "another")
    said = photographs.status()
    assert "the content of data.flickr8k.images changed" in said
    assert re.search(r"^and \d+ that follow", said, re.MULTILINE)


def test_status_when_nothing_is_to_be_done(two: Any) -> None:
    assert two.status() == "two: everything is up to date\n"
