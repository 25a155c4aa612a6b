"""The figures that a run draws by itself: data, captions, training and retrieval."""
