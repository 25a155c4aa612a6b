"""``audit.json``: whether sampled rows of a store are what its recipe gives. It travels with the store."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from vitcapr.files import canonical_json, sha256_bytes
from vitcapr.formats.records import JsonRecord
from vitcapr.formats.store_manifest import IDENTITIES

AUDIT = "audit.json"


@dataclass(frozen=True)
class Audit(JsonRecord):
    FORMAT: ClassVar[str] = "vitcapr-audit-1"
    KIND: ClassVar[str] = "an audit"
    REMEDY: ClassVar[str] = "run vitcapr features audit"

    fingerprint: str
    """Fingerprint of the store."""
    content_sha256: str
    """Digest of the checksums of all arrays and ids: the audit is of these bytes."""
    weights_sha256: str
    """Digest of the checkpoint that computed the sample again."""
    rows: int
    """Number of rows of the store."""
    seed: int
    sample: tuple[int, ...]
    """The rows that were computed again, increasing."""
    verdict: Literal["equal", "rounding", "different"]
    fault: str | None
    """The fault of the rows, as far as it was recognised."""
    bad: tuple[int, ...]
    """The rows of the sample that differ by more than rounding."""
    error: float | None
    """The largest distance of a row from its recomputation, as a share of its length; null: a number is not finite."""
    tolerance: float
    """The distance that counts as rounding in the recipe's arithmetic."""
    machine: str

    def __post_init__(self) -> None:
        if not self.sample or (self.verdict == "rounding" and self.error is None):
            raise ValueError("its verdict has no rows or no number")

    @property
    def bound(self) -> float:
        """The share of bad rows that a sample without any excludes with 95 % confidence: 1 - 0.05^(1/n)."""
        return 0.0 if len(self.sample) == self.rows else 1 - 0.05 ** (1 / len(self.sample))

    def summary(self) -> str:
        if self.verdict == "different":
            return f"different: {self.fault}; {len(self.bad)} of {len(self.sample):,} sampled rows differ"
        sample = f"{len(self.sample):,} of {self.rows:,} rows"
        close = "equal bytes" if self.verdict == "equal" else f"equal but for rounding (at most {self.error:.1e})"
        return f"{close} in {sample}; at most {self.bound:.1%} of all rows are bad (95 %)"


def content_digest(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of what a sealed manifest says of its bytes, wherever the store is."""
    identity = next(name for name in IDENTITIES if name in manifest)
    return sha256_bytes(canonical_json([manifest["arrays"], manifest[identity]]).encode())


def find_audit(store: Path, manifest: Mapping[str, Any]) -> Audit | None:
    """Return the audit in the folder of a store, if there is one of these bytes."""
    path = store / AUDIT
    audit = Audit.read(path) if path.is_file() else None
    return audit if audit and audit.content_sha256 == content_digest(manifest) else None
