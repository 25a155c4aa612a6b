"""The files of an experiment, merged as Snakemake merges them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from vitcapr.config.plain import check_plain
from vitcapr.errors import UserError


def read_merged(*configfiles: Path) -> dict[str, Any]:
    """The values of ``configfiles``, each merged over those before it; without files, those of ``config.yaml``."""
    values: dict[str, Any] = {}
    for path in configfiles or (Path("config.yaml"),):
        _merge(values, read_yaml(path))
    return values


def read_yaml(path: Path) -> dict[str, Any]:
    """Raises:
    UserError: the file is missing or is not a YAML mapping.
    """
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UserError("no such configuration file", where=path) from error
    except UnicodeDecodeError as error:
        raise UserError("a configuration is text in UTF-8", where=path, remedy="save it in this encoding") from error
    except (RecursionError, ValueError) as error:
        raise UserError("a value is nested too deeply or too long", where=path) from error
    except yaml.YAMLError as error:
        raise UserError(f"not YAML: {error}", where=path) from error
    if not isinstance(values, dict):
        raise UserError("a configuration is a mapping of keys to values", where=path)
    check_plain(values, path)
    return values


def _merge(base: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        if isinstance(value, Mapping) and isinstance(base.get(key), dict):
            _merge(base[key], value)
        else:
            base[key] = value
