import pytest

from tests.data_sets import write_data_set


@pytest.fixture
def manifest(tmp_path):
    """Four images, two captions each in English, one in Chinese for the first."""
    splits = {"one": "train", "two": "validation", "three": "test", "four": "train"}
    texts = [
        ("one", "en", "A dog runs."),
        ("one", "zh", "一只狗"),
        ("one", "en", "The dog!"),
        ("two", "en", "A cat runs"),
        ("two", "en", "A cat"),
        ("three", "en", "A cat"),
        ("three", "en", "1 2 3"),
        ("four", "en", "A dog and 2 cats"),
        ("four", "en", "zebra"),
    ]
    return write_data_set(tmp_path / "data", splits, texts)
