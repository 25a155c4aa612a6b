"""The families of alignments by name. A new family is a module with a ``Fit``, a line here and its name in
``vitcapr/config/alignment.py``."""

from collections.abc import Mapping

from vitcapr.studies.alignment.asif import fit_asif
from vitcapr.studies.alignment.cca import fit_cca, fit_csa
from vitcapr.studies.alignment.cka import fit_local_cka
from vitcapr.studies.alignment.heads import HEADS, fit_head
from vitcapr.studies.alignment.interface import Fit
from vitcapr.studies.alignment.procrustes import fit_procrustes
from vitcapr.studies.alignment.ridge import fit_ridge

FAMILIES: Mapping[str, Fit] = {
    **{name: fit_head(name) for name in HEADS},
    "cca": fit_cca,
    "csa": fit_csa,
    "ridge": fit_ridge,
    "procrustes": fit_procrustes,
    "asif": fit_asif,
    "local_cka": fit_local_cka,
}
SEEDED = frozenset(HEADS)
"""The families in which the seed changes more than the pairs that are drawn."""
BASELINE = "linear"
"""The family that the others are compared with."""
