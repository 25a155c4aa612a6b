"""Remarks on a data set, a line each: items that it leaves out, and marks that its captions hold."""

import re
from collections import Counter
from collections.abc import Iterable

FILE = "rejected.csv"
EMPTY_SPLIT = "use more images or other shares, or set run.splits to splits that have images"
"""The remedy for a split without images."""
_TOKENS = (
    r"</?(?:s|start|end|bos|sos|eos|pad|unk|mask|cls|sep|\|\w+\|)>|\[(?:CLS|SEP|PAD|UNK|MASK)\]|\b(?:start|end)seq\b"
    r"|[\u2581\u0120\u010a]|(?:^|\s)##\w+|\w@@(?=\s|$)|</w>|<0x[0-9A-F]{2}>"
)
_HTML = r"&(?:amp|lt|gt|quot|apos|nbsp|#\w+);|</?(?:a|b|br|div|em|i|p|span)\b[^>]*>"
_MARK = re.compile(f"{_TOKENS}|{_HTML}", re.IGNORECASE)
"""A mark that every model and score takes for words."""


def count_reasons(reasons: Iterable[str], most: int = 5) -> str:
    """Return the number of items for each of the commonest reasons: ``2 x image without a caption, 1 x no such file``.

    The text of a reason after a colon is of its item, and does not count.
    """
    counts = Counter(reason.partition(": ")[0] for reason in reasons)
    more = f" and {len(counts) - most} more reasons" if len(counts) > most else ""
    return ", ".join(f"{number:,} x {reason}" for reason, number in counts.most_common(most)) + more


def marks_remark(captions: Iterable[str]) -> str:
    """Return a line for the user if captions have marks of a tokenizer or of HTML; else an empty text.

    >>> marks_remark(["startseq a dog endseq", "Tom &amp; Jerry", "a <b dog"])
    "2 of 3 captions have marks of a tokenizer or of HTML, which count as words; 'startseq' is the first"
    """
    texts = list(captions)
    marks = [mark for text in texts if (mark := _MARK.search(text))]
    if not marks:
        return ""
    what = "marks of a tokenizer or of HTML, which count as words"
    return f"{len(marks)} of {len(texts)} captions have {what}; '{marks[0].group()}' is the first"
