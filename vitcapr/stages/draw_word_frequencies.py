from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import Drawing, Pictures


@Drawing(
    files=lambda _: ["text/vocabulary"],
    inputs=lambda _: {"vocabulary": "results/{experiment}/text/vocabulary.json"},
    caption="How often each word of the training captions occurs, by rank. The rarer words, which are outside the "
    "vocabulary, are marked.",
    category="Data",
    labels={"figure": "word frequencies"},
)
def draw_word_frequencies(vocabulary: In[kinds.VocabularyFile]) -> Pictures:
    """Draw the frequency of each word over its frequency rank."""
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.report.figures.text import rank_frequency

    words = Vocabulary.read(vocabulary)
    return rank_frequency(words.counts[words.first_word :], words.rare)
