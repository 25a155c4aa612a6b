"""``claims.json``: a paper's claims about its preprocessing and the measured values, for people."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from vitcapr.files import write_json

FORMAT = "vitcapr-claims-1"


def write_claims(path: Path, claims: Iterable[Mapping[str, Any]]) -> None:
    """Write the fields of each :class:`vitcapr.data.pairs.claims.Claim`."""
    write_json(path, {"format": FORMAT, "claims": list(claims)})
