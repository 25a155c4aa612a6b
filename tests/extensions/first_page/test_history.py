"""The history of runs, the dot plots and the list "what to look at" of the first page."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.run_records import RECORD
from vitcapr.errors import UserError
from vitcapr.extensions.first_page.answers import since_the_last_run
from vitcapr.extensions.first_page.experiments import write_experiments
from vitcapr.extensions.first_page.look import what_to_look_at
from vitcapr.extensions.first_page.marks import difference_marks, history_marks
from vitcapr.extensions.first_page.run_history import HISTORY, history_table, last_changes, read_history, record_run
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.scores import DIFFERENCES, write_metrics, write_per_image
from vitcapr.metrics.caption_metric import ORACLE
from vitcapr.pipeline.result_cache import ResultCache
from vitcapr.pipeline.run_records import Run

RESAMPLING = {"samples": 50, "seed": 0}


def summary(cider):
    rows = [("a", "beam", "p", cider), ("a", "oracle", ORACLE + "p", 9.0)]
    table = pd.DataFrame(rows, columns=["model", "decoding", "protocol", "value"])
    table = pd.concat([table.assign(metric="cider"), table[1:].assign(metric="claims_true", protocol="p")])
    return table.assign(split="test", low=table["value"] - 0.1, high=np.nan)


def scored(results, key, values):
    """Store the scores of a system as the stage ``score`` does, and return its record."""
    folder = results.parent / key
    folder.mkdir(parents=True)
    table = {"image_id": list("ijkl"), "caption": list("ijkl"), "tokens": [[]] * 4, "cider": values}
    write_per_image(folder / "per_image", pd.DataFrame(table))
    score = {"value": float(np.mean(values)), "low": None, "high": None, "n": 4}
    names = {"model": "a", "decoding": "beam"}
    write_metrics(folder / "metrics", "d", "test", {"cider": score}, "p", **names)
    ResultCache(results / "result_cache").store(key, {n: folder / n for n in ("metrics", "per_image")}, {})
    values_of = {"split": "test", **names}
    made = {**RECORD["made"], "started": f"2126-01-0{len(key)}", "seconds": 30.0}
    record = {**RECORD, "stage": "score", "values": values_of, "made": made, "path": folder / "runs/score/x.json"}
    return Run(**{k: v for k, v in record.items() if k != "format"} | {"result_cache": {"key": key, "restored": None}})


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.delenv("VITCAPR_RESULT_CACHE", raising=False)
    folder = tmp_path / "results/x"
    folder.mkdir(parents=True)
    manifest = tmp_path / "manifest.json"
    manifest.write_text("{}")

    def run(cider, key, values, code="c", **settings):
        job = scored(tmp_path / "results", key, values)
        return record_run(folder, summary(cider), "test", manifest, [job], settings, code, RESAMPLING)

    run(0.5, "k", [0.5, 0.5, 0.5, 0.5], length={"penalty": 0})
    return folder, run, manifest


def test_a_run_is_compared_with_the_one_before_image_by_image(runs):
    folder, run, _ = runs
    entries = run(0.6, "kk", [0.6, 0.6, 0.6, 0.6], length={"penalty": 0.7})
    assert entries == read_history(folder)
    last = entries[-1]
    assert last.changes == ["length.penalty 0 → 0.7"]
    assert last.paired["a, beam"]["cider"] == pytest.approx([0.1, 0.1, 0.1])
    assert last.cost == {"jobs": 1, "seconds": 30.0}
    assert [one["system"] for one in last.scores] == ["a, beam"]  # no oracle
    (change,) = last_changes(entries, "test")
    assert str(change) == "a, beam: CIDEr 50.00 → 60.00 (paired +10.00 (+10.00 to +10.00))"
    (card,) = since_the_last_run(entries, "test")
    assert card[1:3] == ("CIDEr 50.00 → 60.00", "paired +10.00, +10.00 to +10.00")
    assert card.sentences == ["a, beam.", "Changed: length.penalty 0 → 0.7."]
    plot = history_marks(entries, "test")
    assert [(one.low, one.value, one.high) for one in plot.rows] == [(0, 50, 50), (50, 100, 100)]  # from 40 to 60
    assert plot.ends == ("40.0", "60.0")
    table = history_table(entries, "test")
    assert [[cell.text for cell in row][1:] for row in table.rows] == [["60.0", "1", "0:30"], ["50.0", "1", "0:30"]]


def test_an_equal_run_adds_nothing_and_a_lost_cache_leaves_the_scores(runs):
    folder, run, manifest = runs
    job = scored(folder.parent, "kkk", [1.0] * 4)
    again = record_run(folder, summary(0.5), "test", manifest, [job], {"length": {"penalty": 0}}, "c", RESAMPLING)
    assert len(again) == 1
    assert since_the_last_run(again, "test") == []
    (folder.parent / "result_cache/k/metrics").write_text("damaged")
    entries = run(0.7, "kk", [0.7] * 4, code="d", length={"penalty": 0})
    assert (entries[-1].changes, entries[-1].paired) == (["c → d"], {})
    assert since_the_last_run(entries, "test")[0].interval == "not paired"


def test_a_damaged_history_is_named(runs):
    folder, run, _ = runs
    (folder / HISTORY).write_text("{}\n")
    with pytest.raises(UserError, match=HISTORY):
        run(0.7, "kk", [0.7] * 4)


def test_a_forest_plot_has_one_axis_with_zero():
    rows = [
        ("a", "b", "cider", 0.5, 0.6, 0.1, -0.1, 0.3, 0.3, 0.3, "no difference shown"),
        ("a", "b", "i2t_recall_1", 0.5, 0.6, 0.1, 0.05, 0.15, 0.01, 0.02, "higher"),
    ]
    plot = difference_marks(pd.DataFrame(rows, columns=DIFFERENCES))
    assert (plot.zero, plot.ends) == (25, ("-10.0", "+30.0"))
    assert [(one.low, one.value, one.high, one.filled) for one in plot.rows] == [
        (0, 50, 100, False),
        (37.5, 50, 62.5, True),
    ]
    assert difference_marks(pd.DataFrame([], columns=DIFFERENCES)) is None


def test_signs_that_scores_mislead(dataset, tmp_path):
    captions = tmp_path / "captions.json"
    entries = json.loads(captions.read_text())
    for entry in entries[:4]:
        entry["caption"], entry["tokens"] = "a b a b", ["a", "b", "a", "b"]
        entry["candidates"][0] |= {"caption": "a b a b", "tokens": entry["tokens"], "token_log_probs": [-1.0] * 5}
    captions.write_text(json.dumps(entries))
    history = tmp_path / "history.csv"
    history.write_text("epoch,train_loss,validation_loss\n1,3.0,2.0\n2,2.0,1.0\n3,1.0,1.5\n")
    data = read_manifest(dataset)
    found = what_to_look_at(data, "test", {"m": captions}, {"c": history}, [])
    count = len(entries)
    assert f"m: 4 of {count} captions loop (a word or phrase twice in a row)." in found
    assert f"m: 4 of {count} pictures share the caption “a b a b”." in found
    assert found[-1].startswith("c: overfits after epoch 2: the validation loss rises from 1.00 to 1.50")
    assert "tell little" in found[0]
    vars(data)["images"] = data.images.assign(sha256="same")
    assert any("pictures are also in" in sentence for sentence in what_to_look_at(data, "test", {}, {}, []))


def test_the_list_of_experiments_links_what_is_there(runs):
    folder, run, _ = runs
    run(0.6, "kk", [0.6] * 4)
    for file in ("index.html", "head.jpg", "audits/whole/index.html", "tables/scores.html"):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("x")
    (folder.parent / "a & b/runs").mkdir(parents=True)
    (folder.parent / "a & b/runs/data.json").write_text("{}")
    text = write_experiments(folder.parent, "test").read_text()
    assert text.index("<h2>a &amp; b</h2>") < text.index('<h2><a href="x/index.html">x</a></h2>')
    assert "not finished, jobs done: 1" in text
    assert "<b>CIDEr 60.0</b>" in text
    assert "finished, runs: 2, the last " in text
    assert "jobs: 1:00" in text
    assert '<a href="x/tables/scores.html">scores</a> <a href="x/audits/whole/index.html">audits whole</a>' in text
    assert '<img src="x/head.jpg" alt="">' in text
