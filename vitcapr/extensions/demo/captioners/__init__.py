"""A captioner for captions that say where things are."""
