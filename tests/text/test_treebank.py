"""The Treebank rules against NLTK's."""

from hypothesis import given
from hypothesis import strategies as st
from nltk.tokenize import TreebankWordTokenizer

from vitcapr.text.treebank import treebank_words


def test_by_hand() -> None:
    assert treebank_words("I can't, and they'll gimme $3.88.") == [
        *("I", "ca", "n't", ",", "and", "they", "'ll", "gim", "me", "$", "3.88", "."),
    ]


@given(
    st.lists(
        st.sampled_from(["cannot", "gonna", "'tis", "more'n", "d'ye", "a", "dog's", "''", *"\"`'.,:;!?-()[]{}<>&% 9\n"])
    )
)
def test_the_words_of_nltk(pieces: list[str]) -> None:
    for text in ("".join(pieces), " ".join(pieces)):
        assert treebank_words(text) == TreebankWordTokenizer().tokenize(text)
