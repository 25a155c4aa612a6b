"""An experiment file, as written."""

from pathlib import Path
from typing import Any

import yaml

from vitcapr.errors import UserError


def read_yaml(path: Path) -> dict[str, Any]:
    """Raises:
    UserError: the file is missing or is not a YAML mapping, or a key stands twice in a section.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            values = yaml.load(file, _UniqueKeys)
    except OSError as error:
        raise UserError(f"the configuration cannot be read: {error.strerror}", where=path) from error
    except (RecursionError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"not YAML in UTF-8: {error}", where=path) from error
    if not isinstance(values, dict):
        raise UserError("a configuration is a mapping of keys to values", where=path)
    return values


class _UniqueKeys(yaml.SafeLoader):
    """Of two equal keys YAML's own loader takes the last."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        first: dict[str, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                line = key.start_mark.line + 1
                if key.value in first:
                    what = f"the key '{key.value}' stands twice in its section, in lines {first[key.value]} and {line}"
                    raise UserError(what, where=self.name, remedy="rename or remove one of them")
                first[key.value] = line
        return node
