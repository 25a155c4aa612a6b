"""Trained models at work: captions of photographs, on a page as well, and searches in a folder."""
