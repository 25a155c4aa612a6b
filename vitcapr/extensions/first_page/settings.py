"""The first page among the files of a run."""

from vitcapr.experiment.paths import ROOT
from vitcapr.loader import Hooks

PAGE = f"{ROOT}/index.html"

HOOKS = Hooks(tables=lambda experiment: [experiment.targets.path(PAGE)])
