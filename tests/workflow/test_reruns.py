"""For every kind of edit, exactly the rules that run again."""

import os
import re
from collections.abc import Callable
from typing import Any

import pytest

SCORES = {"score", "ground", "score_retrieval", "draw_retrieved", "draw_recall", "compare", "summary"}
RERANKING = {"tune_reranking", "rerank", "draw_reranked"}
AFTER_DECODING = {
    "draw_rollout",
    *("score", "ground", "compare", "summary"),
    *("draw_captions", "draw_attention", "rerank_oracle"),
    *RERANKING,
}
RANKED = {"score_retrieval", "draw_retrieved", "draw_recall", "summary"}
RERANKED = {"rerank_oracle", "score", "compare", "summary", "draw_captions", *RERANKING}
DECODING = {"decode", "decode_attentively", *AFTER_DECODING}
RETRIEVAL = {"train_retriever", "embed", "score_retrieval", "draw_recall", "draw_embeddings", "draw_retrieved"}
RETRIEVAL |= {"draw_curves", "draw_gpu"}
AFTER_RETRIEVAL = {*RETRIEVAL, *RERANKING, "draw_captions", "score", "compare", "summary"}
TRAINING = {"train_captioner", "draw_curves", "draw_gpu", *DECODING, *AFTER_RETRIEVAL}
FEATURES = {"extract", "seal", *TRAINING}
TEXT = {"vocabulary", "draw_text", *TRAINING}
ALL = {"data", "train_backbone", *FEATURES, *TEXT}

# Without masks nothing is grounded, no backbone is trained, and no greedy decoding keeps its attention.
MASKED = {"train_backbone", "ground", "decode_attentively", "draw_attention", "draw_rollout"}
PHOTOGRAPHS = (ALL | {"word_vectors"}) - MASKED

Edit = Callable[[Any], None]


def append(file: str, line: str) -> Edit:
    return lambda project: project.append(file, line)


def configure(**values: object) -> Edit:
    return lambda project: project.configure(**values)


def touch(file: str, time: int) -> Edit:
    return lambda project: os.utime(project.root / file, (time, time))


def test_everything_runs_at_first(fresh: Any) -> None:
    assert fresh.stale_rules() == ALL


BEAM = "vitcapr/decoding/beam.py"


def test_what_changes_no_result_runs_nothing_again(two: Any) -> None:
    two.append(BEAM, "\n# A remark.\n")
    two.append("vitcapr/models/captioners.py", '\n"""A remark as a string."""\n')
    two.append("vitcapr/progress.py", "\nMORE = 1\n")
    two.append("vitcapr/__init__.py", "\nMORE = 1\n")
    two.configure(
        seed=0,
        features={"batch": 16, "device": "cpu"},
        decodings={"greedy": {"batch_images": 7}},
        metrics={"scorer_timeout": 9},
    )
    assert two.stale_rules() == set()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(append(BEAM, "\n# A remark.\n"), set(), id="comment"),
        pytest.param(append(BEAM, "\nMORE = 1\n"), DECODING, id="beam code"),
        pytest.param(
            append("vitcapr/metrics/java.py", "\nMORE = 1\n"),
            {"score", "compare", "summary", "rerank_oracle", "draw_captions", *RERANKING},
            id="METEOR code",
        ),
        pytest.param(append("vitcapr/metrics/grounding.py", "\nMORE = 1\n"), {"ground", "summary"}, id="grounding"),
        pytest.param(append("vitcapr/figures/curves.py", "\nMORE = 1\n"), {"draw_curves"}, id="figure code"),
        pytest.param(append("vitcapr/training/loop.py", "\nMORE = 1\n"), TRAINING, id="training code"),
        pytest.param(append("vitcapr/training/contrastive.py", "\nMORE = 1\n"), AFTER_RETRIEVAL, id="contrastive loss"),
        pytest.param(
            append("vitcapr/metrics/ranks.py", "\nMORE = 1\n"), AFTER_RETRIEVAL, id="ranks, of validation too"
        ),
        pytest.param(append("vitcapr/metrics/retrieval.py", "\nMORE = 1\n"), RANKED, id="retrieval scores"),
        pytest.param(append("vitcapr/decoding/rerank.py", "\nMORE = 1\n"), RERANKED, id="reranking code"),
        pytest.param(append("vitcapr/config/decoding.py", "\nMORE = 1\n"), DECODING, id="a decoding option"),
        pytest.param(append("vitcapr/data/manifest.py", "\nMORE = 1\n"), ALL, id="manifest code"),
        pytest.param(configure(backbones={"vit": {"dtype": "float32"}}), FEATURES, id="dtype"),
        pytest.param(configure(text={"vocabulary": {"threshold": "exclusive"}}), TEXT, id="threshold"),
        pytest.param(configure(seed=1), TRAINING, id="seed"),
        pytest.param(configure(metrics={"bootstrap_samples": 10}), SCORES, id="bootstrap"),
    ],
)
def test_rules_after_an_edit(two: Any, change: Edit, expected: set[str]) -> None:
    change(two)
    assert two.stale_rules() == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(touch("photographs/1.jpg", 2_000_000_000), set(), id="newer image, same bytes"),
        pytest.param(touch("text/Flickr8k.token.txt", 1_000_000_000), set(), id="older captions, same bytes"),
        pytest.param(append("text/Flickr8k.token.txt", "another"), PHOTOGRAPHS, id="caption file"),
        pytest.param(append("photographs/2.jpg", "another"), PHOTOGRAPHS, id="image file"),
        pytest.param(append("photographs/3.jpg", "another"), PHOTOGRAPHS, id="one image more"),
        pytest.param(
            append("vectors.txt", "cat 3 4"),
            {"word_vectors", "train_captioner", "draw_curves", "draw_gpu", *DECODING} - MASKED,
            id="word vectors",
        ),
        pytest.param(
            append("weights/config.json", "another"),
            PHOTOGRAPHS - {"data", "vocabulary", "draw_text", "word_vectors"},
            id="weights of a local backbone",
        ),
    ],
)
def test_rules_after_an_edit_of_the_users_files(photographs: Any, change: Edit, expected: set[str]) -> None:
    change(photographs)
    assert photographs.stale_rules() == expected


def test_an_edit_that_keeps_size_and_an_older_time_is_seen(photographs: Any) -> None:
    photographs.replace("photographs/1.jpg", "first", "other")
    os.utime(photographs.root / "photographs/1.jpg", (1_000_000_000, 1_000_000_000))
    assert photographs.stale_rules() == PHOTOGRAPHS


def test_one_captioners_learning_rate_concerns_only_that_captioner(two: Any) -> None:
    two.configure(captioners__plain__training={"phases": [{"epochs": 10, "learning_rate": 0.5}]})
    assert two.stale_jobs() == {
        "train_captioner plain",
        "decode plain/greedy/test",
        "decode plain/beam/test",
        "decode plain/beam/validation",
        "tune_reranking plain/reranked",
        "rerank plain/reranked/test",
        "rerank_oracle plain/oracle/test",
        "compare plain/reranked/test",
        "compare plain/oracle/test",
        "score plain/greedy/test",
        "score plain/beam/test",
        "score plain/reranked/test",
        "score plain/oracle/test",
        "draw_captions test",
        "draw_reranked plain/reranked/test",
        "draw_curves",
        "draw_gpu",
        "summary",
    }


def test_one_retrievers_temperature_concerns_only_that_retriever(two: Any) -> None:
    two.configure(
        retrievers={"paper": {"temperature": 0.05}},
        run={"captioners": ["attention", "plain"], "retrievers": ["paper", "recommended"], "rerankings": []},
    )
    assert two.stale_jobs() == {
        *("train_retriever paper", "embed paper/test", "score_retrieval paper/test"),
        *("draw_embeddings paper/test", "draw_retrieved paper/test"),
        *("train_retriever recommended", "embed recommended/test", "score_retrieval recommended/test"),
        *("draw_embeddings recommended/test", "draw_retrieved recommended/test"),
        *("draw_recall test", "draw_captions test", "draw_curves", "draw_gpu", "summary"),
    }


def test_one_decodings_beam_concerns_only_that_decoding(two: Any) -> None:
    two.configure(decodings={"greedy": {"max_length": 9}})
    assert two.stale_jobs() == {
        "decode attention/greedy/test",
        "decode plain/greedy/test",
        "score attention/greedy/test",
        "score plain/greedy/test",
        "draw_captions test",
        "summary",
    }


def test_a_captioner_more_leaves_the_others_alone(two: Any) -> None:
    two.configure(
        captioners__second={"backbone": "vit"},
        run={
            "captioners": ["attention", "plain", "second"],
            "decodings": ["greedy"],
            "rerankings": [],
            "retrievers": [],
        },
    )
    assert two.stale_jobs() == {
        "train_captioner second",
        "decode second/greedy/test",
        "score second/greedy/test",
        "draw_captions test",
        "draw_curves",
        "draw_gpu",
        "summary",
    }


def test_status_names_the_edited_module(two: Any) -> None:
    two.append(BEAM, "\nMORE = 1\n")
    said = two.status()
    assert said.startswith("two: 31 jobs to run\n")
    assert re.search(r"decode attention/beam/test +its code changed \(vitcapr/decoding/beam.py\)\n", said)
    assert "and 25 that follow from these" in said


def test_status_names_the_changed_setting(two: Any) -> None:
    two.configure(decodings={"beam": {"beam_size": 6}}, metrics={"bootstrap_samples": 10})
    said = two.status()
    assert re.search(r"decode plain/beam/test +decoding.beam_size 5 -> 6\n", said)
    assert re.search(r"score plain/greedy/test +metrics.bootstrap_samples 1000 -> 10\n", said)


def test_status_names_the_users_changed_files(photographs: Any) -> None:
    photographs.append("photographs/1.jpg", "another")
    said = photographs.status()
    assert "the content of data.flickr8k.images changed" in said
    assert "and 29 that follow" in said


def test_status_when_nothing_is_to_be_done(two: Any) -> None:
    assert two.status() == "two: everything is up to date\n"
