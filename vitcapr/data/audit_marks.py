"""Marks in captions that every model and score takes for words."""

import re
from collections.abc import Iterable

import pandas as pd

_TOKENS = (
    r"</?(?:s|start|end|bos|sos|eos|pad|unk|mask|cls|sep|\|\w+\|)>|\[(?:CLS|SEP|PAD|UNK|MASK)\]|\b(?:start|end)seq\b"
    r"|[\u2581\u0120\u010a]|(?:^|\s)##\w+|\w@@(?=\s|$)|</w>|<0x[0-9A-F]{2}>"
)
_HTML = r"&(?:amp|lt|gt|quot|apos|nbsp|#\w+);|</?(?:a|b|br|div|em|i|p|span)\b[^>]*>"
_MARK = f"(?i)(?:{_TOKENS}|{_HTML})"


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
