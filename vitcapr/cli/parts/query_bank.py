"""A query bank on the command line of the stages that score."""

from pathlib import Path

from vitcapr.artefacts.embeddings import Embeddings, read_embeddings
from vitcapr.artefacts.weight import QueryBankWeight
from vitcapr.errors import UserError
from vitcapr.metrics.query_bank import corrected


def scored_with(found: Embeddings, query_bank: Path | None, weight: Path | None) -> tuple[Embeddings, list[str]]:
    """Embeddings whose dot products are the scores, and what the protocol has to say of that.

    Raises:
        UserError: one of the files is not given, missing, or does not fit.
    """
    if query_bank is None and weight is None:
        return found, []
    if query_bank is None or weight is None:
        raise UserError("a query bank has a weight, and a weight a bank", remedy="give --query-bank and --weight")
    chosen = QueryBankWeight.read(weight)
    return corrected(found, read_embeddings(query_bank), chosen), [chosen.protocol]
