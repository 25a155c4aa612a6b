import io
import re
from html import unescape

from PIL import Image

from vitcapr.formats.tables import Cell, Table, row
from vitcapr.report.direction import Match
from vitcapr.report.figures.examples import Run
from vitcapr.report.first_page.content import Noted, Picture, to_html
from vitcapr.report.first_page.examples import Query

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
        result=[NASTY],
        attention=picture,
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
    assert text.count('width="30" height="20"') == 8  # seven pictures and a canvas
    assert "loading=" not in text
    assert [unescape(alt) for alt in re.findall('alt="([^"]*)"', text)] == [NASTY] * 7
    assert '<ins class="word">new</ins>' in text
    assert text.count("data-truth=") == 1
    assert "(nothing)" in text
    assert "<figcaption>&lt;script" in text
    assert "✓ right · rank 17 · cosine 0.25" in text
    assert "49.0-53.1" in text
    assert "upper bound" in text
    assert not re.search(r'(?:src|href)="(?!data:|#|[a-z]+[./])', text)


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
    assert re.findall(r'href="([^#][^"]*)"', text) == [
        "explorer/index.html",
        "summary.csv",
        "tables/scores.html",
        "figures/",
    ]
    assert 'id="explorer" hidden' in text  # until its script is there
    assert "<code>vitcapr explore" in text
