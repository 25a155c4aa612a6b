import json

import numpy as np
import pytest

from tests.data_sets import write_data_set
from vitcapr.errors import UserError
from vitcapr.formats.tokens import TokenTable
from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.pipeline.run import run_stage
from vitcapr.stages import vocabulary as vocabulary_stage
from vitcapr.stages.data_photographs import data_photographs
from vitcapr.stages.word_vectors import word_vectors


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


@pytest.fixture
def make(tmp_path, manifest):
    def call(source=manifest, **text):
        vocabulary, tokens = tmp_path / "vocabulary.json", tmp_path / "tokens.npz"
        files = {"manifest": source, "vocabulary": vocabulary, "tokens": tokens}
        run_stage(vocabulary_stage.vocabulary, tmp_path / "log", settings={"text": text}, **files)
        return Vocabulary.read(vocabulary), TokenTable.read(tokens)

    return call


def spelled(vocabulary, table):
    return [" ".join(vocabulary.decode(table[row].tolist())) for row in range(len(table))]


def test_words_are_counted_in_train_alone_and_captions_of_all_splits_are_written(make):
    vocabulary, table = make(vocabulary={"min_count": 2})
    assert vocabulary.words[4:] == ("dog", "a")
    assert vocabulary.counts[4:] == (3, 2)
    assert vocabulary.signature == "vocab:train,>=2,6"
    assert spelled(vocabulary, table) == [
        "a dog <unk>",
        "<unk> dog",
        "a <unk> <unk>",
        "a <unk>",
        "a <unk>",
        "a dog <unk> <unk>",
        "<unk>",
    ]
    assert table.image_row.tolist() == [0, 0, 1, 1, 2, 3, 3]
    assert table.caption_row.tolist() == [0, 2, 3, 4, 5, 7, 8]


def test_captions_without_a_known_word_are_left_out_and_counted(make, tmp_path):
    vocabulary, table = make(vocabulary={"min_count": 2, "unknown": False})
    assert table.caption_row.tolist() == [0, 2, 3, 4, 5, 7]
    assert "2 of 8 captions have no known word" in (tmp_path / "log").read_text()
    assert spelled(vocabulary, table)[0] == "a dog"


def test_the_language_and_the_recipe_are_obeyed_and_kept(make):
    vocabulary, table = make(language="zh", vocabulary={"min_count": 1})
    assert set(vocabulary.words[4:]) == set("一只狗")
    assert table.caption_row.tolist() == [1]
    assert vocabulary.recipe["language"] == "zh"
    assert vocabulary.recipe["vocabulary"]["min_count"] == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ({"language": "de"}, "no caption in the language 'de' in train"),
        ({"vocabulary": {"splits": ["none"]}}, "in none"),
        ({"vocabulary": {"min_count": 99}}, "no word is seen 99 times, the most frequent one 3 times; lower"),
    ],
)
def test_nothing_to_count_is_a_users_mistake(make, text, message):
    with pytest.raises(UserError, match=message):
        make(**text)


def test_word_vectors_end_to_end(make, tmp_path):
    vocabulary, _ = make(vocabulary={"min_count": 2})
    (tmp_path / "glove.txt").write_text("dog 1 2 3\nhouse 4 5 6\n")
    outputs = {"vectors": tmp_path / "v.npy", "coverage": tmp_path / "coverage.json"}
    settings = {"word_vectors": {"path": str(tmp_path / "glove.txt"), "dimension": 3}}
    vocabulary_file = tmp_path / "vocabulary.json"
    run_stage(word_vectors, tmp_path / "log", vocabulary=vocabulary_file, settings=settings, **outputs)
    matrix = np.load(tmp_path / "v.npy", allow_pickle=False)
    assert matrix.shape == (len(vocabulary), 3)
    assert matrix[vocabulary.index["dog"]].tolist() == [1, 2, 3]
    coverage = json.loads((tmp_path / "coverage.json").read_text())
    assert coverage["types"] == {"found": 1, "of": 2, "share": 0.5}
    assert coverage["tokens"] == {"found": 3, "of": 5, "share": 0.6}
    assert "1 of 2 words (50.0%), 60.0% of running words" in (tmp_path / "log").read_text()


@pytest.mark.data
def test_the_papers_recipe_gives_its_1848_entries(make, tmp_path, real_data):
    """Flickr8k, all 40,455 captions, words seen more than ten times: the count the ViTCap-R paper reports."""
    flickr8k = real_data / "flickr8k"
    settings = {"images": str(flickr8k / "Flicker8k_Dataset"), "text": str(flickr8k / "Flickr8k_text")}
    run_stage(data_photographs, settings={"flickr8k": settings}, folder=tmp_path / "flickr8k")
    vocabulary, _ = make(
        source=tmp_path / "flickr8k" / "manifest.json",
        normalise={"non_letters": "space", "drop_one_letter": True},
        vocabulary={
            "min_count": 11,
            "splits": ["train", "validation", "test", "none"],
            "unknown": False,
        },
    )
    assert len(vocabulary) == 1848
    assert vocabulary.signature == "vocab:train+validation+test+none,>=11,1848"
