"""The explorer: every image of an experiment in a browser."""

from vitcapr.rooms import Room

ROOM = Room()
