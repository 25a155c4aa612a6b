"""Words that are counted and numbered part by part are those of all captions at once."""

from collections import Counter
from itertools import chain

import numpy as np
import pandas as pd
import pytest

from vitcapr.formats.vocabulary import Vocabulary
from vitcapr.text.corpus import Corpus


@pytest.mark.parametrize("unknown", [True, False])
def test_parts_give_the_counts_and_the_tokens_of_the_whole(unknown):
    draw = np.random.default_rng(0)
    words = [[f"w{n}" for n in draw.integers(0, 9, draw.integers(0, 4)) ** 2] for _ in range(40)]
    table = pd.DataFrame({"split": draw.choice(["train", "test"], 40), "image_row": np.arange(40) // 2})
    train = [caption for caption, split in zip(words, table["split"], strict=True) if split == "train"]
    corpus = Corpus(["train"])
    for rows in np.split(np.arange(40), [0, 7, 8, 25]):
        corpus.add(table.loc[rows], [words[row] for row in rows])
    assert corpus.counts == Counter(chain(*train))
    assert (corpus.captions, corpus.counted) == (40, len(train))
    vocabulary = Vocabulary.build(chain(*train), min_count=4, unknown=unknown)
    encoded = [vocabulary.encode(caption) for caption in words]
    kept = [row for row, caption in enumerate(encoded) if len(caption) > 2]
    assert 0 < len(kept) < 40
    tokens = corpus.encode(vocabulary)
    assert [tokens[place].tolist() for place in range(len(tokens))] == [encoded[row] for row in kept]
    assert tokens.caption_row.tolist() == kept
    assert tokens.image_row.tolist() == [row // 2 for row in kept]
