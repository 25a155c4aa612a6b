"""The paper's claims about its preprocessing, compared with values measured on the present pairs.

The paper's numbers are in its section 3.1.2. Each claim is measured in the sense that could make it true, and in the
sense that its words have.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vitcapr.formats.tables import Cell, Table, row

STEP_PAIRS = 20
"""The paper's batch."""


@dataclass(frozen=True)
class Claim:
    """One line of the table; ``here`` is None where it takes a training to know."""

    what: str
    paper: str
    here: float | None
    unit: str
    note: str


@dataclass(frozen=True)
class ClaimedPicture:
    """Bytes of a picture's file, and its sides in pixels."""

    file_bytes: int
    width: int
    height: int


def base64_bytes(content: int) -> int:
    """The length of ``content`` bytes in Base64: 4 characters for every 3 begun."""
    return -(-content // 3) * 4


def text_claims(removed: Mapping[str, Mapping[str, int]]) -> list[Claim]:
    """Symbols, length and steps, from the counts of cleaning by language (``cleaning.json``)."""
    total = {key: sum(counts[key] for counts in removed.values()) for key in next(iter(removed.values()))}
    claims = []
    for name, counts in [*sorted(removed.items()), ("both languages", total)]:
        symbols, characters = counts["symbols"], max(1, counts["characters"])
        claims += [
            Claim(
                f"symbols and spaces, {name}",
                "13.78 %",
                100 * (symbols + counts["spaces"]) / characters,
                "%",
                "of characters",
            ),
            Claim(f"symbols alone, {name}", "", 100 * symbols / characters, "%", "of characters"),
            Claim(f"removed by cleaning, {name}", "", 100 * (1 - counts["kept"] / characters), "%", "of characters"),
        ]
    before, after = total["captions"], total["captions"] - total["emptied"]
    steps = [-(-number // STEP_PAIRS) for number in (before, after)]
    claims += [
        Claim(
            "fewer steps an epoch",
            "18 %",
            100 * (1 - steps[1] / max(1, steps[0])),
            "%",
            f"{steps[0]:,} and {steps[1]:,} batches of {STEP_PAIRS}: shorter texts do not change their number",
        ),
        Claim("less time a step", "", None, "%", "takes a training with data.pairs.clean on and off"),
    ]
    return claims


def text_length(text: str, language: str) -> int:
    """Words; of Chinese, which has no spaces between words, characters that are no spaces."""
    words = text.split()
    return sum(map(len, words)) if language == "zh" else len(words)


def length_claim(words: Sequence[int], language: str) -> Claim:
    """``words``: the length of each raw text, :func:`text_length`."""
    low, middle, high = np.percentile(np.asarray(words), [5, 50, 95])
    unit = "characters" if language == "zh" else "words"
    return Claim(f"median length, {language}", "27 to 32 words", float(middle), unit, f"5 to 95 %: {low:g} to {high:g}")


def base64_claims(pictures: Sequence[ClaimedPicture]) -> list[Claim]:
    """What Base64 does to the bytes of pictures: of their files, and of their raw pixels."""
    files = sum(picture.file_bytes for picture in pictures)
    encoded = sum(base64_bytes(picture.file_bytes) for picture in pictures)
    raw = sum(3 * picture.width * picture.height for picture in pictures)
    raw_encoded = sum(base64_bytes(3 * picture.width * picture.height) for picture in pictures)

    def change(after: int, before: int) -> float:
        return 100 * (after / max(1, before) - 1)

    return [
        Claim(
            "Base64 of the file, against the file", "about -30 %", change(encoded, files), "%", "4 bytes for every 3"
        ),
        Claim(
            "Base64 of raw RGB, against raw RGB", "about -30 %", change(raw_encoded, raw), "%", "4 bytes for every 3"
        ),
        Claim("the file, against raw RGB", "", change(files, raw), "%", "what compresses is JPEG"),
        Claim(
            "Base64 of the file, against raw RGB", "about -30 %", change(encoded, raw), "%", "JPEG's gain less a third"
        ),
    ]


def claims_table(claims: Sequence[Claim], title: str) -> Table:
    return Table(title, ("claim", "paper", "here", "note"), tuple(map(_row, claims)), align="lrrl")


def _row(claim: Claim) -> tuple[Cell, ...]:
    here = "not measured" if claim.here is None else f"{claim.here:.2f} {claim.unit}"
    return row(claim.what, claim.paper, here, claim.note)
