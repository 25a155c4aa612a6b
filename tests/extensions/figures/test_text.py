import numpy as np

from vitcapr.extensions.figures.text_figures import caption_lengths, rank_frequency


def test_words_by_rank_with_the_rare_ones_after_the_threshold():
    axes = rank_frequency([5, 40, 5], {1: 3, 4: 1}).axes[0]
    kept, rare, threshold = axes.get_lines()
    assert kept.get_xdata().tolist() == [1, 2, 3]
    assert kept.get_ydata().tolist() == [40, 5, 5]
    assert rare.get_xdata().tolist() == [3, 4, 5, 6, 7]
    assert rare.get_ydata().tolist() == [5, 4, 1, 1, 1]
    assert set(threshold.get_ydata()) == {5}
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [
        "in the vocabulary: 3 words and its signs,\n87.7% of running words",
        "too rare: 4 words,\n12.3% of running words",
    ]


def test_shares_of_captions_by_length_and_split():
    figure = caption_lengths({"train": np.array([2, 2, 3, 5]), "test": np.array([1]), "none": np.zeros(0, np.int64)})
    train, test = figure.axes[0].get_lines()
    assert train.get_ydata().tolist() == [0, 0, 0.5, 0.25, 0, 0.25]
    assert test.get_ydata().tolist() == [0, 1]
    assert figure.axes[0].yaxis.get_major_formatter().format_pct(0.5, 1) == "50%"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "train: 4 captions, mean 3.0, longest 5",
        "test: 1 captions, mean 1.0, longest 1",
    ]
