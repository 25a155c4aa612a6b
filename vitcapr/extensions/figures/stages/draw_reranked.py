from vitcapr.config.report import FigureSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Language, Out, Split, stage
from vitcapr.progress import Reporter


@stage()
def draw_reranked(
    before: In[kinds.CaptionsFile],
    after: In[kinds.CaptionsFile],
    manifest: In[kinds.ManifestFile],
    split: Split,
    language: Language,
    settings: FigureSettings,
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw images with their captions before and after reranking, and the CIDEr of both.

    Sampled from the images whose caption changed, so that changes for the worse appear as often as they occur.
    """
    from vitcapr.extensions.figures.caption_sheets import draw_changed
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.report.figures.examples import Choice
    from vitcapr.report.figures.style import save_pictures

    choice = Choice(**settings.figures.examples_of(settings.figures.examples))
    figure = draw_changed(read_manifest(manifest), split, language, before, after, choice, report)
    save_pictures(figure, pictures, report)
