"""Names in a configuration. They become folders, wildcards of rules and words of commands."""

import re
from typing import Annotated

from pydantic import AfterValidator

LONGEST = 100
_SOUND = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BESIDE_EXPERIMENTS = ("stores", "result_cache")


def check_name(name: str) -> str:
    """Return ``name`` if it is safe as a folder, as a wildcard and as a word of a command.

    Raises:
        ValueError: it is not safe.
    """
    if not _SOUND.fullmatch(name) or len(name) > LONGEST:
        raise ValueError(
            f"a name has 1 to {LONGEST} letters (a to z), digits, '_', '.' and '-'; it must not start with '.' or '-'"
        )
    return name


def not_reserved(*reserved: str) -> AfterValidator:
    """A validator that rejects the names ``reserved`` in upper or lower case."""

    def check(name: str) -> str:
        if name.casefold() in reserved:
            raise ValueError(f"'{name}' is a reserved name in the results folder; choose another one")
        return name

    return AfterValidator(check)


Name = Annotated[str, AfterValidator(check_name)]
ExperimentName = Annotated[Name, not_reserved(*_BESIDE_EXPERIMENTS)]
"""Name of an experiment. Its folder is in ``results/``, beside the reserved ones."""
CaptionerName = Annotated[Name, not_reserved("retrieval", "information", "languages")]
"""Name of a captioner. Its scores are in ``metrics/``, beside the reserved folders."""
ModelName = Annotated[Name, not_reserved("untrained")]
"""Name of a retriever or fine-tuned dual encoder. Its embeddings are in ``embeddings/``, beside the reserved folder."""
