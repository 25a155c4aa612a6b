"""Rows of imported features that cannot be those of an image."""

import hashlib
from collections.abc import Sequence

import numpy as np

from vitcapr.errors import UserError


class OddRows:
    """Rows that cannot be features of an image: zeros, one number, not finite, or equal to an earlier row."""

    def __init__(self, array: str) -> None:
        self.array, self.rows, self._digests = array, 0, set[bytes]()
        self.zero, self.constant = list[str](), list[str]()
        self.infinite, self.repeated, self.partly = list[str](), list[str](), list[str]()

    def look(self, values: np.ndarray, ids: Sequence[str]) -> None:
        """Sort the next rows, (n, ...), into the kinds."""
        for name, vectors in zip(ids, values, strict=True):
            row = vectors.ravel()
            if vectors.ndim == 2 and row.any() and not vectors.any(axis=1).all():
                self.partly.append(name)
            if not np.isfinite(row).all():
                self.infinite.append(name)
            elif (row == row[0]).all():
                (self.constant if row[0] else self.zero).append(name)
            elif (digest := hashlib.sha256(row.tobytes()).digest()[:16]) in self._digests:
                self.repeated.append(name)
            else:
                self._digests.add(digest)
        self.rows += len(ids)

    def lines(self) -> list[str]:
        """Return a line for each kind.

        Raises:
            UserError: a number is not finite.
        """

        def counted(names: list[str]) -> str:
            return f"'{self.array}': {len(names)} of {self.rows} rows"

        if self.infinite:
            raise UserError(f"{counted(self.infinite)} are not finite, '{self.infinite[0]}' first")
        kinds = {"are zeros": self.zero, "are one number": self.constant, "equal an earlier row": self.repeated}
        kinds["have patches of zeros"] = self.partly
        return [f"{counted(names)} {what}, '{names[0]}' first" for what, names in kinds.items() if names]
