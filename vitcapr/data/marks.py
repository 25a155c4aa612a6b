"""Marks in captions that every model and score takes for words, and marks of entries that do not count."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

_NOT_COUNTED = ("rejected", "precanned", "ignored", "ignore", "deleted", "discarded", "excluded", "invalid", "spam")
_COUNTED = ("valid", "accepted", "approved")
ENTRY_MARKS = {f"{begin}{word}": word in _NOT_COUNTED for word in (*_NOT_COUNTED, *_COUNTED) for begin in ("is_", "")}
"""Field -> its value if the entry does not count. VizWiz writes ``is_rejected`` and ``is_precanned``."""
_WRITTEN = {"true": True, "1": True, "false": False, "0": False}

_TOKENS = (
    r"</?(?:s|start|end|bos|sos|eos|pad|unk|mask|cls|sep|\|\w+\|)>|\[(?:CLS|SEP|PAD|UNK|MASK)\]|\b(?:start|end)seq\b"
    r"|[\u2581\u0120\u010a]|(?:^|\s)##\w+|\w@@(?=\s|$)|</w>|<0x[0-9A-F]{2}>"
)
_HTML = r"&(?:amp|lt|gt|quot|apos|nbsp|#\w+);|</?(?:a|b|br|div|em|i|p|span)\b[^>]*>"
_MARK = f"(?i)(?:{_TOKENS}|{_HTML})"


def not_counted(entry: Mapping[str, Any]) -> str:
    """Return the reason why an entry does not count, as its own fields say; else an empty text.

    >>> not_counted({"caption": "a dog", "is_rejected": True})
    'its file says is_rejected: true'
    """
    for field, value in ENTRY_MARKS.items():
        if field in entry and _WRITTEN.get(str(entry[field]).strip().lower()) is value:
            return f"its file says {field}: {str(value).lower()}"
    return ""


def marks_remark(captions: Iterable[str]) -> str:
    """Return a line for the user if captions have such marks; else an empty text.

    >>> marks_remark(["startseq a dog endseq", "Tom &amp; Jerry", "a <b dog"])
    "2 of 3 captions have marks of a tokenizer or of HTML, which count as words; 'startseq' is the first"
    """
    texts = pd.Series(captions, dtype="str")
    marked = texts[texts.str.contains(_MARK)]
    first = re.search(_MARK, marked.iloc[0]) if len(marked) else None
    if first is None:
        return ""
    what = "marks of a tokenizer or of HTML, which count as words"
    return f"{len(marked)} of {len(texts)} captions have {what}; '{first.group()}' is the first"
