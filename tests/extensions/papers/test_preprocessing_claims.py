"""The paper's claims, on numbers small enough to check by hand."""

import base64

import pytest

from vitcapr.extensions.papers.preprocessing_claims import (
    base64_bytes,
    base64_claims,
    claims_table,
    length_claim,
    text_claims,
)
from vitcapr.formats.tables import to_markdown
from vitcapr.text.cleaning import Cleaner


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 100])
def test_the_length_of_base64(size: int) -> None:
    assert base64_bytes(size) == len(base64.b64encode(bytes(size)))


def test_base64_adds_a_third_and_jpeg_is_what_saves() -> None:
    file, raw, jpeg, both = base64_claims([(300, 900), (600, 1800)])
    assert (file.here, raw.here) == (pytest.approx(100 / 3), pytest.approx(100 / 3))
    assert jpeg.here == pytest.approx(-100 * 2 / 3)
    assert both.here == pytest.approx(100 * (1200 / 2700 - 1))


def test_shares_of_symbols_and_steps() -> None:
    cleaner = Cleaner()
    for _ in range(20):
        cleaner.clean("a dog .", "en")
    cleaner.clean("狗。", "zh")
    cleaner.clean("！", "zh")
    found = {claim.what: claim.here for claim in text_claims(cleaner.removed)}
    assert found["symbols and spaces, en"] == pytest.approx(300 / 7)
    assert found["symbols alone, zh"] == pytest.approx(200 / 3)
    assert found["symbols alone, both languages"] == pytest.approx(100 * 22 / 143)
    assert found["removed by cleaning, en"] == pytest.approx(200 / 7)
    assert found["fewer steps an epoch"] == 0
    assert found["less time a step"] is None


def test_a_ratio_to_zero_is_a_dash() -> None:
    nothing = text_claims({"en": dict.fromkeys(("symbols", "characters", "spaces", "kept", "captions", "emptied"), 0)})
    claims = [*nothing, *base64_claims([(0, 0)])]
    here = [line.split(" | ")[2] for line in to_markdown(claims_table(claims, "Title")).splitlines()[4:]]
    assert sorted(here) == ["-"] * 11 + ["not measured"]


def test_the_page() -> None:
    page = to_markdown(claims_table([length_claim([1, 2, 9], "en")], "Title"))
    assert page.splitlines()[4] == "| median length, en | 27 to 32 words | 2.00 words | 5 to 95 %: 1.1 to 8.3 |"
