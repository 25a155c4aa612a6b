"""All caption metrics, in the order of their scores in tables."""

from functools import cache
from importlib import import_module

from vitcapr.metrics.base import CaptionMetric
from vitcapr.modules import modules_in

PACKAGE = "vitcapr.metrics.captions"
_FIRST = ("bleu", "meteor", "rouge_l", "cider", "spice", "diversity")
"""Others follow by name."""


@cache
def caption_metrics() -> dict[str, CaptionMetric]:
    """Every module of ``vitcapr.metrics.captions`` by its name."""
    names = sorted(modules_in(PACKAGE), key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
    return {name: import_module(f"{PACKAGE}.{name}").METRIC for name in names}
