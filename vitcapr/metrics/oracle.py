"""The ceiling of a reranking: the candidate that the references themselves like best. Never a result."""

from collections.abc import Mapping, Sequence
from typing import Any

from vitcapr.errors import UserError

KEY = "oracle"
"""What marks every entry of a captions.json that was chosen with the references."""
CHOSEN_BY = "sentence CIDEr against the references of the same image"
PROTOCOL = "ORACLE, NOT A RESULT:chosen by cider against the references that score it|"


def is_oracle(entries: Sequence[Mapping[str, Any]]) -> bool:
    return any(KEY in entry for entry in entries)


def check_name(decoding: str, where: object) -> None:
    """Raises:
    UserError: captions of an oracle would be scored under a name that does not say so.
    """
    if "oracle" not in decoding.lower():
        raise UserError(
            f"these captions were chosen with the references, and '{decoding}' does not say so",
            where=where,
            remedy="score them under a name that contains 'oracle'",
        )
