"""The explorer: every image of an experiment in a browser."""

from vitcapr.loader import Hooks

HOOKS = Hooks()
