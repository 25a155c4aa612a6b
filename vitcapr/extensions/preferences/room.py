"""Preferences of scores: captions ranked as people rank them, true captions above foils."""

from vitcapr.rooms import Room

ROOM = Room()
