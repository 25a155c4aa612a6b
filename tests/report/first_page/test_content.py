import re
from html.parser import HTMLParser

from vitcapr.formats.tables import Cell, Table, row
from vitcapr.report.first_page.content import (
    Captioned,
    FirstPage,
    Match,
    Noted,
    Picture,
    Query,
    Retrieved,
    Words,
    to_html,
)

NASTY = '<script>alert("x")</script>'
SCORES = Table(NASTY, ("model", NASTY), (row(NASTY, Cell("51.2", "49.0", "53.1")),))


def page(scores=(SCORES,), **parts):
    return FirstPage(title=NASTY, facts=[("data", NASTY)], scores=scores, again=NASTY, folder=NASTY, **parts)


class Headings(HTMLParser):
    """The texts of the headings, the tags in use and the alternative texts."""

    def __init__(self, text):
        super().__init__()
        self.found, self.alts, self.tags, self.inside = [], [], set(), False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.inside = tag == "h2"
        if tag == "img":
            self.alts.append(dict(attributes).get("alt"))

    def handle_data(self, text):
        if self.inside:
            self.found.append(text)
            self.inside = False


def test_only_what_there_is_has_a_section():
    read = Headings(to_html(page()))
    assert read.found == ["Scores", "Run it again"]
    assert "img" not in read.tags
    assert Headings(to_html(page(scores=[]))).found == ["Run it again"]


def test_every_section_and_no_markup_from_outside():
    picture = Picture(b"jpeg", NASTY)
    captions = {NASTY: [Words(NASTY), Words(NASTY, "del"), Words("new", "ins")], "x": []}
    found = Query(NASTY, [Match(picture, 0.9, 1, False), Match(picture, 0.25, 17, True)])
    text = to_html(
        page(
            beside=Noted([SCORES], NASTY),
            captioned=Noted([Captioned(picture, captions, NASTY)], NASTY),
            retrieved=Noted([Retrieved("From text to image", [found], [found])], NASTY),
            curves=[picture],
            cost=Noted(SCORES, NASTY),
            has_oracle=True,
            has_alignments=True,
        )
    )
    read = Headings(text)
    assert read.found == [
        *("Scores", "Beside the paper", "Captions", "Retrieval at its best and worst", "Training", "Cost"),
        "Run it again",
    ]
    assert "script" not in read.tags
    assert read.alts == [NASTY] * 6
    assert "<ins>new</ins>" in text
    assert "(nothing)" in text
    assert "✓ right · rank 17 · cosine 0.25" in text
    assert "49.0-53.1" in text
    assert "upper bound" in text
    assert not re.search(r'(?:src|href)="(?!data:|#|[a-z]+[./])', text)
