"""Finds the modules of a package by name, so that a new module needs no registration."""

import pkgutil
from importlib.util import find_spec


def modules_in(package: str) -> list[str]:
    """The names of a package's modules, without importing them."""
    spec = find_spec(package)
    assert spec is not None
    return [module.name for module in pkgutil.iter_modules(spec.submodule_search_locations)]
