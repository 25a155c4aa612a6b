"""Precomputed-feature pipeline for image captioning and image-text retrieval."""

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """``vitcapr.open_features``, imported when it is first used."""
    if name == "open_features":
        from vitcapr.features.store.reader import open_features

        return open_features
    raise AttributeError(f"module 'vitcapr' has no attribute {name!r}")
