import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from vitcapr.errors import UserError
from vitcapr.formats.claims import Claim
from vitcapr.formats.scores import RankFile, Ranks, write_metrics
from vitcapr.metrics.bootstrap import NOT_SHOWN, plain_score, ratio_measure, score_of
from vitcapr.metrics.bootstrap import compare as compare_measures
from vitcapr.metrics.caption_metric import ORACLE
from vitcapr.metrics.captions.bleu import METRIC as BLEU
from vitcapr.metrics.captions.bleu import bleu
from vitcapr.metrics.captions.chair import METRIC as CHAIR
from vitcapr.metrics.captions.cider import cider
from vitcapr.metrics.captions.diversity import length_mean
from vitcapr.metrics.system_comparison import compare_systems, paired_differences, read_scored, with_claims
from vitcapr.pipeline.run import run_stage
from vitcapr.report.score_tables import comparison_page
from vitcapr.stages.compare import compare

PROTOCOL = "tok:ptb|refs:1|images:40|split:test|lang:en|bleu:corpus,closest|vocab:train,>=1,7"
REFERENCES = [[f"a dog number n{i} runs on the green grass"] for i in range(40)]
WORSE = [f"a dog number n{i} sits on {'a' if i % 3 else 'the'} green bench" for i in range(40)]
BETTER = [f"a dog number n{i} runs on the {'wet' if i % 4 else 'green'} grass" for i in range(40)]


def scored(folder, name, written, protocol=PROTOCOL, dataset="toys"):
    """The two files of a system, as ``score`` leaves them."""
    measures = bleu(written, REFERENCES) | {"cider": cider(written, REFERENCES)}
    measures |= {
        "length_mean": length_mean([text.split() for text in written]),
        "chair_i": ratio_measure([0] * 40, [0] * 40),
    }
    table = pd.DataFrame({"image_id": [f"i{n}" for n in range(40)], "caption": written, "tokens": written})
    for metric, measure in measures.items():
        table[metric] = measure.per_image
    for metric, (column, _) in (BLEU.corpus | CHAIR.corpus).items():
        table[column] = list(measures[metric].statistics)
    metrics = {metric: score_of(measure, 10, 0) for metric, measure in measures.items()}
    metrics["vocabulary_used"] = plain_score(len({word for text in written for word in text.split()}), 40)
    paths = folder / f"{name}.json", folder / f"{name}.parquet"
    table.to_parquet(paths[1], index=False)
    write_metrics(paths[0], dataset=dataset, split="test", model="m", decoding=name, metrics=metrics, protocol=protocol)
    return paths


def test_a_comparison_by_its_parts(tmp_path):
    before, after = (read_scored(*scored(tmp_path, name, text)) for name, text in (("beam", WORSE), ("dual", BETTER)))
    content = compare_systems(before, after, samples=200, seed=3)
    assert (content["images"], content["changed"], content["split"]) == (40, 40, "test")
    assert content["after"] == {"model": "m", "decoding": "dual", "protocol": PROTOCOL}
    bleu_before, bleu_after = bleu(WORSE, REFERENCES), bleu(BETTER, REFERENCES)
    for name in ("bleu_1", "bleu_4"):
        row = content["metrics"][name]
        expected = compare_measures(bleu_after[name], bleu_before[name], 200, 3)
        assert row["before"] == pytest.approx(bleu_before[name].value, abs=1e-8)
        assert row["difference"] == pytest.approx(bleu_after[name].value - bleu_before[name].value, abs=1e-8)
        assert [row["low"], row["high"], row["p_value"]] == pytest.approx(list(expected[1:]), abs=1e-8)
        assert row["verdict"] == "higher"
    assert content["metrics"]["length_mean"]["difference"] == 0
    assert content["metrics"]["length_mean"]["verdict"] == "no difference shown"
    assert content["metrics"]["vocabulary_used"]["verdict"] == "not tested"
    assert "chair_i" not in content["metrics"], "no caption mentions an object"
    assert compare_systems(after, before, 200, 3)["metrics"]["cider"]["verdict"] == "lower"
    assert content["protocol"] == "paired|ci:95,samples=200,seed=3|p:exchange,two-sided"
    untested = compare_systems(before, after, 0, 3)
    assert (untested["metrics"]["cider"]["verdict"], untested["protocol"]) == ("not tested", "paired")


def ranks(folder, name, wrong):
    """The ranks of a model that misses the images whose numbers are in ``wrong``, of 40 with a caption each."""
    i2t = np.where(np.isin(np.arange(40), wrong), 2, 1).astype(np.int32)
    rows = np.arange(40, dtype=np.int32)
    RankFile(Ranks(i2t, np.ones(40, np.int32), np.ones(40)), rows, rows, rows).write(folder / f"{name}.npz")
    return folder / f"{name}.npz"


def test_the_score_that_shows_a_difference_is_shown_after_correction_for_all_that_were_tried(tmp_path):
    """Claims: 14 captions become true and 2 false. CIDEr: none shown. Recalls: 6 images gained, a test among four."""
    claim = {right: [Claim("objects", "dog", "dog", right, (1,))] for right in (True, False)}
    before = {f"i{n}": claim[n >= 14] for n in range(40)}
    after = {f"i{n}": claim[n < 38] for n in range(40)}
    one, two = (read_scored(*scored(tmp_path, name, WORSE)) for name in ("beam", "dual"))
    content = compare_systems(with_claims(one, before), with_claims(two, after), samples=200, seed=3)
    true = content["metrics"]["claims_true"]
    assert (true["before"], true["after"], true["difference"]) == (0.65, 0.95, 0.3)
    assert true["p_value"] == pytest.approx(binomtest(14, 16).pvalue, abs=1e-8)
    assert content["metrics"]["claims_objects"]["difference"] == 0.3
    with pytest.raises(UserError, match="claims are of other images"):
        with_claims(one, {"i0": claim[True]})

    files = {name: ranks(tmp_path, name, wrong) for name, wrong in (("a", range(6)), ("b", ()))}
    oracle = {**content, "after": {**content["after"], "protocol": ORACLE + PROTOCOL}}
    table = paired_differences([content, oracle], files, samples=200, seed=3).set_index("metric")
    assert table.index.tolist() == ["cider", "claims_true", "i2t_recall_1", "t2i_recall_1"]
    p_values = [1, 0.004180908203125, 0.03125, 1]
    assert table["p_value"].tolist() == pytest.approx(p_values)
    adjusted = [1, 4 * p_values[1], 2 * p_values[2], 1]  # by hand: times 4 / rank, from the smallest p
    assert table["adjusted"].tolist() == pytest.approx(adjusted)
    # The interval of the recall leaves out 0, and among four tests that is not enough.
    assert table["low"]["i2t_recall_1"] > 0
    assert table["verdict"].tolist() == [NOT_SHOWN, "higher", NOT_SHOWN, NOT_SHOWN]
    assert paired_differences([], {"a": files["a"]}, 200, 3).empty


def test_the_command_writes_both_files(tmp_path):
    files = [*scored(tmp_path, "beam", WORSE), *scored(tmp_path, "my-oracle", BETTER, ORACLE + PROTOCOL)]
    outputs = tmp_path / "comparison.json", tmp_path / "comparison.md"
    names = ("before", "before_images", "after", "after_images", "comparison", "table")
    given = dict(zip(names, (*files, outputs[0], [outputs[1]]), strict=True))
    run_stage(compare, **given, settings={"metrics": {"bootstrap_samples": 50}}, log=tmp_path / "log")
    content, text = json.loads(outputs[0].read_text()), outputs[1].read_text()
    assert text == comparison_page(content)
    assert "### m, my-oracle against m, beam: toys, test split, 40 images" in text
    assert "**After is an oracle: a ceiling, not a result.**" in text
    assert "ORACLE, NOT A RESULT" in text
    row = content["metrics"]["bleu_4"]
    line = next(line for line in text.splitlines() if line.startswith("| BLEU-4"))
    assert line.split(" | ")[1:4] == [
        f"{100 * row['before']:.2f}",
        f"{100 * row['after']:.2f}",
        f"{100 * row['difference']:+.2f}",
    ]
    assert line.endswith("| higher |")
    assert f"compare: CIDEr {100 * content['metrics']['cider']['before']:.2f} to" in (tmp_path / "log").read_text()


def test_systems_that_cannot_be_compared_are_refused(tmp_path):
    good = read_scored(*scored(tmp_path, "a", WORSE))
    elsewhere = read_scored(*scored(tmp_path, "b", BETTER, dataset="others"))
    with pytest.raises(UserError, match="scored on toys and the other on others"):
        compare_systems(good, elsewhere, 10, 0)
    fewer = read_scored(*scored(tmp_path, "b", BETTER, PROTOCOL.replace("refs:1", "refs:5")))
    with pytest.raises(UserError, match=r"refs:1.*refs:5"):
        compare_systems(good, fewer, 10, 0)
    other_words = read_scored(*scored(tmp_path, "b", BETTER, PROTOCOL.replace(">=1,7", ">=5,9")))
    assert compare_systems(good, other_words, 10, 0)["images"] == 40


def test_files_of_two_scorings_are_refused(tmp_path):
    first, second = scored(tmp_path, "a", WORSE), scored(tmp_path, "b", BETTER)
    with pytest.raises(UserError, match="give the files of one scoring"):
        read_scored(first[0], second[1])
    second[1].write_bytes(b"PAR1 nothing")
    with pytest.raises(UserError, match="not a table of scores by image"):
        read_scored(second[0], second[1])
