"""Modules found by name: adding one to a package is all it takes to be found."""

import pkgutil
from importlib.util import find_spec

FOUND_BY_NAME = {"vitcapr.metrics.caption_metrics": "vitcapr.metrics.captions"}
"""Module -> the package whose modules it imports by name, which the import graph does not show."""


def modules_in(package: str) -> list[str]:
    """The names of a package's modules; none of them is imported."""
    spec = find_spec(package)
    assert spec is not None
    return [module.name for module in pkgutil.iter_modules(spec.submodule_search_locations)]
