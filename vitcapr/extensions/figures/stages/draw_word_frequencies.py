from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_word_frequencies(
    vocabulary: In[kinds.VocabularyFile],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw the frequency of each word over its frequency rank."""
    from vitcapr.extensions.figures.text_figures import rank_frequency
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.report.figures.style import save_pictures

    words = Vocabulary.read(vocabulary)
    save_pictures(rank_frequency(words.counts[words.first_word :], words.rare), pictures, report)
