"""The upper bound of reranking: the candidate with the best score against the references. It is never a result."""

from collections.abc import Iterable

from vitcapr.errors import UserError
from vitcapr.formats.captions import CocoResult

CHOSEN_BY = "sentence CIDEr against the references of the same image"
PROTOCOL = "ORACLE, NOT A RESULT:chosen by cider against the references that score it|"


def is_oracle(results: Iterable[CocoResult]) -> bool:
    """Whether the references chose a caption."""
    return any(result.oracle is not None for result in results)


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
