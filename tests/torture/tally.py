"""What a campaign did, and how much of it ended well."""

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts kills, faults and inputs by kind; for use by several threads."""

    done: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, name: str, problem: str | None, number: int = 1) -> None:
        """Count ``number`` of a ``kind``; ``problem`` is None if they ended well."""
        with self._lock:
            self.done[kind] += number
            if problem is not None:
                self.problems.append(f"{kind}: {name}: {problem}")

    def count(self, group: str) -> int:
        """How many there were of all kinds of ``group``."""
        return sum(number for kind, number in self.done.items() if kind.partition(",")[0] == group)

    def note(self, what: str) -> None:
        with self._lock:
            self.notes[what] += 1

    def __str__(self) -> str:
        totals = [f"{self.count(group)} {group}" for group in ("kills", "runs", "copies", "faults", "inputs")]
        kinds = [f"  {what}: {number}" for what, number in sorted((self.done + self.notes).items())]
        return "\n".join([", ".join(totals), *kinds, *(f"  PROBLEM {problem}" for problem in self.problems)])
