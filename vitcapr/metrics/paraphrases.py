"""METEOR's paraphrase table, reduced to the entries that the references of a split can use.

Reading the whole table (62 MB, 5.6 million entries) is three quarters of the work of scoring 500 captions. METEOR comes
with a program that keeps the entries one side of which occurs in given references; as a match needs the one side in the
reference and the other in the caption, no caption can miss what is left out, and its scores are the same. (The program
reads references without their punctuation; no entry has a token of punctuation.)
"""

import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from vitcapr.errors import UserError
from vitcapr.files import atomic_path, sha256_bytes, sha256_file
from vitcapr.formats.scores import PARAPHRASES_CARD as CARD
from vitcapr.formats.scores import PARAPHRASES_TABLE as TABLE
from vitcapr.formats.scores import ParaphrasesCard
from vitcapr.metrics import java

_LINES = 3


def write_paraphrases(directory: Path, references: Mapping[str, Sequence[str]], timeout: float) -> int:
    """Write METEOR's paraphrases of ``references`` (tokenised, by image), and a card of what they are of.

    Returns:
        The number of entries kept.

    Raises:
        UserError: METEOR's program failed, took longer than ``timeout`` seconds, or left half a table.
    """
    table = directory / TABLE
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
    ParaphrasesCard(count, _digest(references), sha256_file(table)).write(directory / CARD)
    return count


def find_paraphrases(directory: Path, references: Mapping[str, Sequence[str]]) -> Path:
    """The table in ``directory``, which must have been made of these references.

    Raises:
        UserError: it is another file, or of other references, or the table is not the one that was written with it.
    """
    card = ParaphrasesCard.read(directory / CARD)
    if card.references != _digest(references):
        raise UserError(
            "the paraphrases are of other references",
            where=directory / CARD,
            remedy="write them again (vitcapr stage paraphrases) from the same manifest, split and language",
        )
    table = directory / TABLE
    if not table.is_file() or card.table != sha256_file(table):
        raise UserError("the paraphrases are missing or damaged", where=table, remedy="delete them and run again")
    return table


def _digest(references: Mapping[str, Sequence[str]]) -> str:
    lines = "".join(f"{text}\n" for texts in references.values() for text in texts)
    return sha256_bytes(lines.encode("utf-8"))
