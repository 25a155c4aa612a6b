"""The first page: its HTML, its sentences and examples, and the cost of the jobs behind it."""

import io
import json
import re
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.data_sets import embeddings_of
from tests.run_records import RECORD
from vitcapr.extensions.first_page.answers import Answer, answers
from vitcapr.extensions.first_page.first_page_examples import (
    Query,
    best_and_worst,
    captioned,
    highest_recall,
    looked,
    query,
)
from vitcapr.extensions.first_page.index_page import (
    Noted,
    Picture,
    cost_note,
    cost_table,
    data_line,
    jobs_behind,
    to_html,
)
from vitcapr.files import write_json
from vitcapr.formats.manifest import read_manifest
from vitcapr.formats.scores import DIFFERENCES
from vitcapr.formats.tables import Cell, Table, row
from vitcapr.metrics.caption_metric import ORACLE
from vitcapr.pipeline.run_records import read_runs
from vitcapr.progress import format_seconds
from vitcapr.report.direction import Match, image_to_text, text_to_image
from vitcapr.report.figures.examples import Choice, Run, open_images

NASTY = '<script>alert("x")</script>'
SCORES = Table(NASTY, ("model", NASTY), (row(NASTY, Cell("51.2", "49.0", "53.1")),))


def page(scores=(SCORES,), **parts):
    parts = {"split": "test", **parts}
    return to_html(title=NASTY, facts=[("data", NASTY)], scores=scores, again=NASTY, folder=NASTY, **parts)


def test_no_section_has_markup_from_outside():
    stream = io.BytesIO()
    Image.new("RGB", (30, 20)).save(stream, "JPEG")
    picture = Picture(stream.getvalue(), NASTY, image=NASTY)
    captions = {NASTY: [Run(NASTY, truth=NASTY), Run(NASTY, "del"), Run("new", "ins")], "x": []}
    query = Query(NASTY, [(picture, Match(0, 0.9, False), 1), (picture, Match(1, 0.25, True), 17)])
    text = page(
        answers=[Answer(NASTY, NASTY, NASTY, [NASTY])],
        looked={
            "picture": picture,
            "words": [NASTY],
            "attention": {"grid": [1, 1], "weights": [NASTY], "peaks": [1]},
            "note": NASTY,
        },
        beside=Noted([SCORES], NASTY),
        captioned=Noted(
            [{"picture": picture, "captions": captions, "reference": NASTY, "attention": {NASTY: {"weights": NASTY}}}],
            NASTY,
        ),
        retrieved=Noted([{"title": "From text to image", "best": [query], "worst": [query]}], NASTY),
        curves=[picture],
        cost=Noted(SCORES, NASTY),
        has_oracle=True,
        has_alignments=True,
        split=NASTY,
    )
    assert text.count("<script") == 1  # its own
    assert NASTY not in text
    assert text.count('width="30" height="20"') == 9  # seven pictures and two canvases
    assert "loading=" not in text
    assert [unescape(alt) for alt in re.findall('alt="([^"]*)"', text)] == [NASTY] * 7
    assert '<ins class="word">new</ins>' in text
    assert text.count("data-truth=") == 1
    assert "(nothing)" in text
    assert "<figcaption>&lt;script" in text
    assert "✓ right · rank 17 · cosine 0.25" in text
    assert "49.0-53.1" in text
    assert "upper bound" in text
    assert not re.search(r'(?:src|href)="(?!data:|#|[a-z]+[./]|\.\./index)', text)


def test_headings_are_explained_and_rows_without_a_number_are_left_out():
    rows = (row("a", Cell("1.0", notes=(2,))), row("b", "-"))
    text = page(scores=[Table("", ("model", "mAP@R"), rows, notes=("one", "two"), help=("", "MAP at R"))])
    assert '<abbr title="MAP at R">mAP@R</abbr>' in text
    assert "<p>mAP@R: MAP at R.</p>" in text
    assert "1.0<sup>b</sup>" in text
    assert "<p><sup>b</sup> two</p>" in text
    assert '<th scope="row" class="l">b</th>' not in text


def test_files_that_are_not_there_yet_are_commands_and_no_links():
    text = page()
    links = ["../index.html", "explorer/index.html", "summary.csv", "tables/scores.html"]
    assert re.findall(r'href="([^#][^"]*)"', text) == links
    assert re.findall(r'href="([^#][^"]*)"', page(figures=True)) == [*links, "figures/"]
    assert 'id="explorer" hidden' in text  # until its script is there
    assert "<code>vitcapr explore" in text


def score(model, decoding, metric, value, protocol="p", split="test"):
    names = ("model", "decoding", "metric", "value", "low", "high", "protocol", "split")
    return dict(zip(names, (model, decoding, metric, value, value - 0.01, value + 0.01, protocol, split), strict=True))


def test_the_answers_of_the_page():
    summary = pd.DataFrame(
        [
            score("a", "greedy", "cider", 0.5),
            score("a", "beam", "cider", 0.7),
            score("a", "oracle", "cider", 0.9, ORACLE + "p"),
            score("a", "greedy", "cider", 2.0, split="validation"),
            score("a", "beam", "claims_true", 0.8),
            score("r", "", "t2i_recall_1", 0.25),
            score("r", "", "i2t_recall_1", 0.2),
        ]
    )
    rows = [
        ("a, beam", "a, reranked", "cider", 0.70, 0.72, 0.02, -0.01, 0.05, 0.300, 0.300, "no difference shown"),
        ("a, beam", "a, reranked", "claims_true", 0.80, 0.82, 0.02, 0.01, 0.04, 0.004, 0.008, "higher"),
    ]
    captions, retrieval, shown = answers(summary, "test", pd.DataFrame(rows, columns=DIFFERENCES))
    sentence = "a, beam, the highest of 2 systems, the oracle left out."
    assert captions == ("Captions", "CIDEr 70.0", "69.0-71.0", [sentence, "True captions: 80.0 (79.0-81.0)."])
    assert retrieval[1:3] == ("T→I R@1 25.0", "24.0-26.0")
    assert retrieval.sentences == ["r, the only system.", "I→T R@1: 20.0 (19.0-21.0)."]
    assert shown == (
        "Differences",
        "1 of 2 shown",
        "corrected for 2 paired tests",
        [
            "True captions +2.00 (+1.00 to +4.00), a, reranked against a, beam (corrected p 0.008).",
            "No difference shown by the other 1.",
        ],
    )
    assert answers(summary[:0], "test", None) == []


def test_the_picture_at_the_head_has_a_typical_caption_and_loops_are_counted(dataset, tmp_path):
    """The captions of i0 to i5 have 2 to 6 and 13 words; the caption of median length becomes a loop."""
    entries = json.loads((tmp_path / "captions.json").read_text())
    data, files = (
        read_manifest(dataset),
        [{"m/beam": tmp_path / f"{name}"} for name in ("captions.json", "attention.npz")],
    )
    with open_images(data) as read:
        found = looked(data, "test", *files, read)
        assert len(found["words"]) == 5
        assert "a caption of about the median length. None of its 6 captions loop." in found["note"]
        looping = ["word0", "word1", "word0", "word1", "word2"]
        entries[3]["tokens"] = entries[3]["candidates"][0]["tokens"] = looping
        (tmp_path / "captions.json").write_text(json.dumps(entries))
        found = looked(data, "test", *files, read)
        assert found["words"] != looping
        assert "1 of its 6 captions loops." in found["note"]
        assert looked(data, "test", {}, {}, read) is None


def test_the_captions_in_use_are_counted(dataset):
    data = read_manifest(dataset)
    assert data_line(data, "en").endswith(f", {len(data.captions)} captions")
    both = pd.concat([data.captions, data.captions.assign(language="zh")])
    vars(data)["captions"] = both
    line = data_line(data, "en")
    assert line.endswith(f", {len(both) // 2} captions in use (of {len(both)}: those in en)")


@pytest.fixture
def embedded():
    """Three images on the axes. Caption 0 is its image, 1 is halfway to image 1, 2 is nearer to image 0 than to its own
    image 1, 3 is opposite to its own."""
    return embeddings_of(np.eye(3), [[1, 0, 0], [0.8, 0.6, 0], [0.6, 0.8, 0], [0.6, 0.8, -0.1]], [0, 0, 1, 2])


@pytest.fixture
def asked(embedded):
    return text_to_image(embedded), image_to_text(embedded)


def test_nearest_positives_and_negatives(asked):
    to_image, to_text = asked
    np.testing.assert_allclose(np.subtract(*to_image.nearest_cosines()), [1, 0.2, 0.2, -0.9], atol=1e-6)
    np.testing.assert_allclose(to_text.nearest_cosines(), [[1, 0.8, -0.1], [0.6, 0.8, 0]], atol=1e-6)


def test_best_and_worst_ask_for_an_image_once(asked):
    to_image, to_text = asked
    # The ranks follow from the cosines.
    assert best_and_worst(to_image, np.array([1, 1, 1, 3])) == ([0, 2], [3])
    assert best_and_worst(to_text, np.array([1, 2, 4])) == ([0], [2, 1])


def test_the_true_match_follows_if_it_is_not_among_the_first(asked):
    to_image, to_text = asked
    found = query(3, to_image, 3, str, str)
    assert [(shown, rank, match.positive) for shown, match, rank in found.matches] == [
        *(("1", 1, False), ("0", 2, False), ("2", 3, True)),
    ]
    found = query(2, to_text, 4, str, str)
    assert [(shown, rank, match.positive) for shown, match, rank in found.matches] == [
        *(("0", 1, False), ("1", 2, False), ("2", 3, False), ("3", 4, True)),
    ]
    assert found.matches[-1][1].cosine == pytest.approx(-0.1)


def test_the_model_with_the_highest_recall_at_1():
    rows = [
        *(("a", "test", "i2t_recall_1", 0.5), ("a", "test", "t2i_recall_1", 0.5)),
        *(("b", "test", "i2t_recall_1", 0.9), ("b", "test", "t2i_recall_1", 0.2)),
        *(("a", "validation", "i2t_recall_1", 0.9), ("c", "test", "t2i_recall_1", 0.3)),
    ]
    summary = pd.DataFrame(rows, columns=["model", "split", "metric", "value"])
    assert highest_recall(summary, ["a", "b", "c"], "test") == "b"
    assert highest_recall(summary, ["a", "c"], "test") == "a"
    assert highest_recall(summary, ["x", "y"], "test") == "x"


def test_the_note_counts_the_changed_captions_among_the_examples(dataset, tmp_path):
    """Of six images, a reranking changed the captions of i0, i1 and i2; i0 and i5 are drawn."""
    entries = json.loads((tmp_path / "captions.json").read_text())
    for entry in entries[:3]:
        entry["caption"], entry["tokens"] = "other", ["other"]
        entry["candidates"][0] |= {"caption": "other", "tokens": ["other"], "token_log_probs": [-1.0, -1.0]}
    (tmp_path / "reranked.json").write_text(json.dumps(entries))
    captions = {"m/beam": tmp_path / "captions.json", "m/reranked": tmp_path / "reranked.json"}
    data, bases = read_manifest(dataset), {"m/reranked": "m/beam", "m/oracle": "m/beam"}
    choice = Choice(2, images=["i0", "i5"])
    with open_images(data) as read:
        section = captioned(data, "test", "en", captions, bases, choice, read)
    assert "2 of 6 images of the test split" in section.note
    assert "Reranking changed a caption of 3 of the 6 images, and of 1 of the 2 below." in section.note
    first, last = section.content
    assert first["captions"]["m/reranked"] == [
        *(("word0", "del", ""), ("word1", "del", ""), ("other", "ins", "")),
    ]
    assert {run.change for run in last["captions"]["m/reranked"]} == {""}
    assert captioned(data, "test", "en", {}, {}, choice, None) is None


def record(folder, name, inputs, outputs, seconds=1.0, restored=None):
    """A run record, as a job of the experiment x writes it."""

    def described(places):
        return {f"results/x/{place}": {"option": "o", "sha256": "0" * 64, "size": 1} for place in places}

    measured = {"seconds": seconds, "cpu_seconds": 2 * seconds, "peak_memory_mb": int(1000 * seconds)}
    made = {**RECORD["made"], **measured, "platform": "Linux"}
    files = {"inputs": described(inputs), "outputs": described(outputs), "made": made}
    job = {"stage": name.partition("/")[0], "result_cache": {"key": "k", "restored": restored}}
    write_json(folder / f"runs/{name}.json", {**RECORD, **files, **job})


def test_the_jobs_behind_the_page_and_no_others(tmp_path):
    folder = tmp_path / "results/x"
    record(folder, "data", [], ["data/manifest.json"], seconds=1.5)
    record(folder, "train/a", ["data/manifest.json"], ["a.bin"], seconds=3600)
    record(folder, "train/b", ["data/manifest.json"], ["b.bin"], seconds=1800, restored="2026-01-02")
    record(folder, "train/unused", ["data/manifest.json"], ["c.bin"], seconds=99999)
    record(folder, "score", ["a.bin", "b.bin"], ["summary.csv"])
    jobs = jobs_behind(folder / "index.html", [folder / "summary.csv", Path("/elsewhere/file")])
    table, note = cost_table(jobs), cost_note(jobs)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["train", "2", "1:30:00", "3:00:00", "3600.0 GB"],
        ["data", "1", "0:01", "0:03", "1.5 GB"],
        ["score", "1", "0:01", "0:02", "1.0 GB"],
        ["all", "4", "1:30:02", "3:00:05", "3600.0 GB"],
    ]
    assert "Measured 2026-01-01 on Linux." in note
    assert "1 of 4 jobs were restored" in note


def test_the_cheap_stages_share_a_row(tmp_path):
    for number in range(11):
        record(tmp_path, f"s{number:02d}", [], [f"{number}"], seconds=float(100 - number))
    table = cost_table(read_runs(tmp_path))
    rows = table.rows
    assert [row[0].text for row in rows[-3:]] == ["s07", "3 other stages", "all"]
    assert rows[-2][2].text == format_seconds(92 + 91 + 90)
