from vitcapr.config.report import FigureSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter


@stage()
def draw_attention(
    captions: In[kinds.CaptionsFile],
    attention: In[kinds.AttentionFile],
    manifest: In[kinds.ManifestFile],
    vocabulary: In[kinds.VocabularyFile],
    split: Split,
    settings: FigureSettings,
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw the attention at each word of a caption, or at chosen words, of some images.

    Images are named, or sampled from those with the longest captions.
    """
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.vocabulary import Vocabulary
    from vitcapr.report.figures.attention import draw_attended
    from vitcapr.report.figures.examples import Choice, check_words
    from vitcapr.report.figures.style import save_pictures

    choice = Choice(**settings.figures.attended)
    check_words(choice.words, Vocabulary.read(vocabulary).words)
    drawn = draw_attended(read_manifest(manifest), split, captions, attention, choice, report)
    save_pictures(drawn, pictures, report)
