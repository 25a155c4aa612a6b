"""Preferences: do scores rank captions as people do, and true captions above foils?"""

from vitcapr.rooms import Room

ROOM = Room()
