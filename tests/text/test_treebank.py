"""The rules cut as nltk's tokenizer does."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from nltk.tokenize import TreebankWordTokenizer

from vitcapr.text.treebank import treebank_words

NLTK = TreebankWordTokenizer()
SIGNS = r"""
' '' " `` . ... , : ; ? ! -- - ( ) [ ] < { } @ # $ % & 3 3.5 's 'S 'm 'd 'll 'LL 're 've n't N'T can not Cannot d'ye
gimme lemme gonna GOTTA more'n wanna 'tis 'Twas dog é U.S. 狗
"""


def test_words_computed_by_hand():
    words = ["``", "Do", "n't", "!", "''", "he", "can", "not", "say", "..."]
    assert treebank_words('"Don\'t!" he cannot say...') == words


@given(st.lists(st.sampled_from([" ", "\n", *SIGNS.split()]), max_size=12).map("".join) | st.text(max_size=30))
@example("'tis'Twas")
@settings(max_examples=300)
def test_words_of_nltk(text):
    assert treebank_words(text) == NLTK.tokenize(text)
