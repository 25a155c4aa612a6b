"""Precomputed-feature pipeline for image captioning and image-text retrieval.

The Python interface is documented in docs/python-api.md. ``__init__.pyi`` tells type checkers the same names.
"""

from importlib import import_module
from typing import Any

__version__ = "1.0.0"

_HOMES = {
    "UserError": "vitcapr.errors",
    "evaluate": "vitcapr.api.evaluation",
    "evaluate_retrieval": "vitcapr.api.retrieval_evaluation",
    "load_captioner": "vitcapr.api.trained_captioner",
    "load_retriever": "vitcapr.api.trained_retriever",
    "open_features": "vitcapr.store.reader",
    "read_manifest": "vitcapr.formats.manifest",
    "to_datasets": "vitcapr.api.arrow",
    **dict.fromkeys(("extract", "run", "seal"), "vitcapr.api.steps"),
}
"""Name -> module. A module is imported when its name is first used, and the code hash of no stage follows it."""

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vitcapr' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))


def __dir__() -> list[str]:
    return sorted(__all__)
