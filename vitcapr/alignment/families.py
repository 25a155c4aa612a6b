"""The families of alignments by name. A new family is a module with a ``Fit``, a line here and its name in
``vitcapr/config/alignment.py``."""

from collections.abc import Mapping
from typing import NamedTuple

from vitcapr.alignment.asif import fit_asif
from vitcapr.alignment.cca import fit_cca, fit_csa
from vitcapr.alignment.cka import fit_local_cka
from vitcapr.alignment.heads import HEADS, fit_head
from vitcapr.alignment.interface import Fit
from vitcapr.alignment.procrustes import fit_procrustes
from vitcapr.alignment.ridge import fit_ridge
from vitcapr.config.alignment import FAMILIES as NAMES


class Family(NamedTuple):
    """Attributes:
    seeded: the seed changes more than the pairs that are drawn.
    """

    fit: Fit
    seeded: bool = False


_FITS: Mapping[str, Family] = {
    **{name: Family(fit_head(name), seeded=True) for name in HEADS},
    "cca": Family(fit_cca),
    "csa": Family(fit_csa),
    "ridge": Family(fit_ridge),
    "procrustes": Family(fit_procrustes),
    "asif": Family(fit_asif),
    "local_cka": Family(fit_local_cka),
}
FAMILIES: Mapping[str, Family] = {name: _FITS[name] for name in NAMES}
BASELINE = "linear"
"""The family that the others are compared with."""
