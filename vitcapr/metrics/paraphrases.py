"""METEOR's table of paraphrases, cut down to what the references of a split can use.

Reading the whole table (62 MB, 5.6 million entries) is three quarters of the work of scoring 500 captions. METEOR
comes with a program that keeps the entries one side of which occurs in given references; as a match needs the one
side in the reference and the other in the caption, no caption can miss what is left out, and its scores are the same.
"""

import gzip
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, read_json, write_json
from vitcapr.metrics import java

FORMAT = "vitcapr-paraphrases-1"
TABLE = "table.gz"
"""Stands beside the card: lines by three, a probability and two phrases."""

_LINES = 3


def write_paraphrases(card: Path, table: Path, references: Mapping[str, Sequence[str]], timeout: float) -> int:
    """Write METEOR's paraphrases of ``references`` (tokenised, by image), and what they are of.

    Returns:
        The number of entries kept.

    Raises:
        UserError: METEOR's program failed, took longer than ``timeout`` seconds, or left half a table.
    """
    with atomic_path(table) as temporary:
        java.filter_paraphrases([text for texts in references.values() for text in texts], temporary, timeout)
        # Java's writer keeps a full disk to itself.
        try:
            with gzip.open(temporary) as lines:
                count, rest = divmod(sum(1 for _ in lines), _LINES)
        except (EOFError, OSError, zlib.error):
            rest = 1
        if rest:
            raise UserError("METEOR's program wrote half a table", where=table, remedy="is the disk full?")
    write_json(card, {"format": FORMAT, "entries": count, "references": _digest(references)})
    return count


def find_paraphrases(card: Path, references: Mapping[str, Sequence[str]]) -> Path:
    """The table beside ``card``, which must have been made of these references.

    Raises:
        UserError: it is another file, or of other references.
    """
    content = read_json(card)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise UserError(f"not a card of paraphrases ({FORMAT})", where=card)
    if content.get("references") != _digest(references):
        raise UserError(
            "the paraphrases are of other references",
            where=card,
            remedy="write them again (vitcapr paraphrases) from the same manifest, split and language",
        )
    return card.parent / TABLE


def _digest(references: Mapping[str, Sequence[str]]) -> str:
    lines = "".join(f"{text}\n" for texts in references.values() for text in texts)
    return hashlib.sha256(lines.encode("utf-8")).hexdigest()
