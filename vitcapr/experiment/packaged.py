"""The files of the workflow: in the installed package, or in the checkout."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]

WORKFLOW = _PACKAGE / "project" if (_PACKAGE / "project").is_dir() else _PACKAGE.parent
"""The folder with the Snakefile, the rules, ``config.yaml``, the profiles and the experiments."""

SNAKEFILE = str(WORKFLOW / "Snakefile")
