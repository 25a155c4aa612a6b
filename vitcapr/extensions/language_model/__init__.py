"""Captioners of a pretrained language model that reads the image as a prefix."""
