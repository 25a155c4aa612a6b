import pandas as pd
import pytest

from vitcapr.formats.manifest import write_manifest


@pytest.fixture
def manifest(tmp_path):
    """Four images, two captions each in English, one in Chinese for the first."""
    images = pd.DataFrame(
        {
            "image_id": ["one", "two", "three", "four"],
            "path": ["1.png", "2.png", "3.png", "4.png"],
            "split": ["train", "validation", "test", "train"],
            "width": 8,
            "height": 8,
            "sha256": "0" * 64,
        }
    )
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
    split = dict(zip(images["image_id"], images["split"], strict=True))
    captions = pd.DataFrame(
        {
            "caption_id": [f"c{number}" for number in range(len(texts))],
            "image_id": [image for image, _, _ in texts],
            "language": [language for _, language, _ in texts],
            "text": [text for _, _, text in texts],
            "split": [split[image] for image, _, _ in texts],
        }
    )
    return write_manifest(
        tmp_path / "data", dataset="toy", image_root=tmp_path, images=images, captions=captions, rejected=[]
    )
