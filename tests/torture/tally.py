"""What a campaign did, and how much of it ended well."""

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Counts kills, faults and inputs; for use by several threads."""

    done: Counter[str] = field(default_factory=Counter)
    well: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, name: str, problem: str | None, number: int = 1) -> None:
        """Count ``number`` of a ``kind``; ``problem`` is None if they ended well."""
        with self._lock:
            self.done[kind] += number
            self.well[kind] += number * (problem is None)
            if problem is not None:
                self.problems.append(f"{kind}: {name}: {problem}")

    def count(self, group: str) -> int:
        """How many there were of all kinds of ``group``."""
        with self._lock:
            return sum(number for kind, number in self.done.items() if kind.partition(",")[0] == group)

    def note(self, what: str, number: int = 1) -> None:
        with self._lock:
            self.notes[what] += number

    def __str__(self) -> str:
        lines = [f"  {kind:44} {self.done[kind]:6}  {self.well[kind]:6} ended well" for kind in sorted(self.done)]
        groups = Counter({kind.partition(",")[0]: 0 for kind in self.done})
        good = Counter(groups)
        for kind in self.done:
            groups[kind.partition(",")[0]] += self.done[kind]
            good[kind.partition(",")[0]] += self.well[kind]
        totals = [f"{groups[group]} {group}, {good[group]} of them ended well" for group in sorted(groups)]
        notes = [f"  {what}: {number}" for what, number in sorted(self.notes.items())]
        return "\n".join([*totals, *lines, *notes, *(f"  PROBLEM {problem}" for problem in self.problems)])
