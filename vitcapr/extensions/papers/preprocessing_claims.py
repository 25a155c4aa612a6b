"""The paper's claims about its preprocessing, compared with values measured on the present pairs.

The paper's numbers are in its section 3.1.2. Each claim is measured in the sense that could make it true, and in the
sense that its words have.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vitcapr.formats.tables import NOTHING, Table, row

STEP_PAIRS = 20
"""The paper's batch."""


class Claim(NamedTuple):
    """A line of the table; ``here`` is None where only a training could tell, and NaN where nothing was counted."""

    what: str
    paper: str
    here: float | None
    unit: str
    note: str


def base64_bytes(content: int) -> int:
    """Return the length of ``content`` bytes in Base64: 4 characters for every 3 begun."""
    return -(-content // 3) * 4


def text_claims(removed: Mapping[str, Mapping[str, int]]) -> list[Claim]:
    """Symbols, length and steps, from the counts of cleaning by language (``cleaning.json``)."""
    total = {key: sum(counts[key] for counts in removed.values()) for key in next(iter(removed.values()))}
    claims = []
    for name, counts in [*sorted(removed.items()), ("both languages", total)]:
        symbols, characters = counts["symbols"], counts["characters"]
        for what, paper, share in (
            ("symbols and spaces", "13.78 %", _percent(symbols + counts["spaces"], characters)),
            ("symbols alone", "", _percent(symbols, characters)),
            ("removed by cleaning", "", 100 - _percent(counts["kept"], characters)),
        ):
            claims.append(Claim(f"{what}, {name}", paper, share, "%", "of characters"))
    before, after = (-(-number // STEP_PAIRS) for number in (total["captions"], total["captions"] - total["emptied"]))
    note = f"{before:,} and {after:,} batches of {STEP_PAIRS}: shorter texts do not change their number"
    training = "takes a training with data.pairs.clean on and off"
    return [
        *claims,
        Claim("fewer steps an epoch", "18 %", 100 - _percent(after, before), "%", note),
        Claim("less time a step", "", None, "%", training),
    ]


def text_length(text: str, language: str) -> int:
    """Words; of Chinese, which has no spaces between words, characters that are no spaces."""
    words = text.split()
    return sum(map(len, words)) if language == "zh" else len(words)


def length_claim(words: Sequence[int], language: str) -> Claim:
    """``words``: the length of each raw text, :func:`text_length`."""
    low, middle, high = np.percentile(np.asarray(words), [5, 50, 95])
    unit = "characters" if language == "zh" else "words"
    return Claim(f"median length, {language}", "27 to 32 words", float(middle), unit, f"5 to 95 %: {low:g} to {high:g}")


def base64_claims(pictures: Sequence[tuple[int, int]]) -> list[Claim]:
    """Return claims about Base64: its effect on the bytes of picture files and of raw pixels."""
    files, raw = map(sum, zip(*pictures, strict=True))
    encoded, raw_encoded = (sum(map(base64_bytes, sizes)) for sizes in zip(*pictures, strict=True))
    return [
        Claim(what, paper, _percent(after, before) - 100, "%", note)
        for what, paper, after, before, note in (
            ("Base64 of the file, against the file", "about -30 %", encoded, files, "4 bytes for every 3"),
            ("Base64 of raw RGB, against raw RGB", "about -30 %", raw_encoded, raw, "4 bytes for every 3"),
            ("the file, against raw RGB", "", files, raw, "what compresses is JPEG"),
            ("Base64 of the file, against raw RGB", "about -30 %", encoded, raw, "JPEG's gain less a third"),
        )
    ]


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else math.nan


def claims_table(claims: Sequence[Claim], title: str) -> Table:
    def value(claim: Claim) -> str:
        if claim.here is None:
            return "not measured"
        return NOTHING if math.isnan(claim.here) else f"{claim.here:.2f} {claim.unit}"

    rows = tuple(row(claim.what, claim.paper, value(claim), claim.note) for claim in claims)
    return Table(title, ("claim", "paper", "here", "note"), rows, align="lrrl")
