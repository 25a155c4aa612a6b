"""Errors for the user: what is wrong, where, and what to do."""

import difflib
import unicodedata
from collections.abc import Iterable, Sequence

EXIT_BAD_INPUT = 2
EXIT_PREEMPTED = 75
EXIT_INTERRUPTED = 130
"""As the shell reports a program that Ctrl-C ended."""
EXIT_NOT_READ = 141
"""As the shell reports a program that SIGPIPE ended."""


class UserError(Exception):
    """An error in the input, or a limit of the machine, that the user can correct.

    It is printed as one line, ``error: <what> (<where>); <remedy>``, without a traceback. The exit code is 2.
    """

    exit_code = EXIT_BAD_INPUT

    def __init__(self, what: str, *, where: object = None, remedy: str | None = None) -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        place = "" if self.where is None else f" ({self.where})"
        remedy = "" if self.remedy is None else f"; {self.remedy}"
        return printable(" ".join(f"{self.what}{place}{remedy}".split()))


class UserErrors(UserError):
    """Several errors in one input, a line for each."""

    def __init__(self, errors: Sequence[UserError]) -> None:
        self.errors = errors
        super().__init__(f"{len(errors)} mistakes")

    def __str__(self) -> str:
        return "\n".join([f"{self.what}:", *(f"  {error}" for error in self.errors)])


def as_user_error(errors: Sequence[UserError]) -> UserError:
    """Join errors: one error keeps its line, several become a list."""
    return errors[0] if len(errors) == 1 else UserErrors(errors)


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """Return a remedy for an unknown name: the known one that is most like it, or else ``otherwise``."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean '{close[0]}'?" if close else otherwise


def printable(text: str) -> str:
    """Control and invisible characters as escapes: nothing in a name or a caption steers the terminal.

    New lines stay, and the joiners that some scripts write with.
    """
    escaped, kept = ("Cc", "Cf", "Cs"), "\n\u200c\u200d"
    return "".join(
        c.encode("unicode_escape").decode("ascii") if unicodedata.category(c) in escaped and c not in kept else c
        for c in text
    )


class Preempted(Exception):
    """A signal stopped the stage. Its state is saved, and the same command continues it."""

    exit_code = EXIT_PREEMPTED
