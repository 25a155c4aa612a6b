"""Preferences of scores: captions ranked as people rank them, true captions above foils."""

from vitcapr.loader import Hooks

HOOKS = Hooks()
