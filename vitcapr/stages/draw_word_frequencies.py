"""Draw word frequencies."""

from vitcapr.formats.kinds import FigureFile, VocabularyFile
from vitcapr.pipeline.figure import Figure
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage(
    figure=Figure(
        files=lambda _: ["text/vocabulary"],
        inputs=lambda _: {"vocabulary": "results/{experiment}/text/vocabulary.json"},
        caption="How often each word of the training captions occurs, by rank. The rarer words, which are outside the "
        "vocabulary, are marked.",
        category="Data",
        labels={"figure": "word frequencies"},
    )
)
def draw_word_frequencies(
    vocabulary: In[VocabularyFile],
    report: Reporter,
    pictures: list[Out[FigureFile]],
) -> None:
    """Draw the frequency of each word over its frequency rank."""
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.report.figures.style import save_pictures
    from vitcapr.report.figures.text import rank_frequency

    words = Vocabulary.read(vocabulary)
    figure = rank_frequency(words.counts[words.first_word :], words.rare)
    save_pictures({"vocabulary": figure}, pictures, report)
