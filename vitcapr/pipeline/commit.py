"""The commit of a checkout."""

import subprocess
from pathlib import Path

_SECONDS = 20


def commit_of(folder: Path) -> str | None:
    """The commit that ``folder`` was checked out from, ending in ``-dirty`` where files have changed since.

    None where git does not track ``folder``, or there is no git.
    """
    try:
        tracked = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "--error-unmatch", "__init__.py"],
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
        if tracked.returncode:
            return None
        described = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            capture_output=True,
            check=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip() or None
