"""Names that a configuration gives: they become folders, wildcards of rules and words of commands."""

import re
from typing import Annotated

from pydantic import AfterValidator

LONGEST = 100
_SOUND = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BESIDE_EXPERIMENTS = ("stores", "result_cache")


def check_name(name: str) -> str:
    """``name``, if it is safe as a folder, as a wildcard and as a word of a command.

    Raises:
        ValueError: it is not.
    """
    if not _SOUND.fullmatch(name) or len(name) > LONGEST:
        raise ValueError(
            f"a name has 1 to {LONGEST} letters (a to z), digits, '_', '.' and '-', and starts with no '.' or '-'"
        )
    return name


def not_reserved(*reserved: str) -> AfterValidator:
    """A further check: the name is none of ``reserved``, in whatever case."""

    def check(name: str) -> str:
        if name.casefold() in reserved:
            raise ValueError(f"'{name}' is the name of something else in the folder of results; choose another")
        return name

    return AfterValidator(check)


Name = Annotated[str, AfterValidator(check_name)]
ExperimentName = Annotated[Name, not_reserved(*_BESIDE_EXPERIMENTS)]
"""Its folder lies in ``results/``, beside these."""
CaptionerName = Annotated[Name, not_reserved("retrieval", "information", "languages")]
"""Its scores lie in ``metrics/``, beside those of retrieval."""
ModelName = Annotated[Name, not_reserved("untrained")]
"""Of a retriever or matcher: its embeddings lie in ``embeddings/``, beside those of untrained models."""
