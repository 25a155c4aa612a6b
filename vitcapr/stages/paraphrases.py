from vitcapr.config.report import LanguageSettings
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter


@stage(cached=True)
def paraphrases(
    manifest: In[kinds.ManifestFile],
    split: Split,
    settings: LanguageSettings,
    report: Reporter,
    paraphrases: Out[kinds.ParaphrasesFolder],
) -> None:
    """Cut METEOR's table of paraphrases down to the references of a split."""
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.caption_metric import references_of
    from vitcapr.metrics.captions.meteor import write_paraphrases
    from vitcapr.metrics.java import tokenize_all

    references = references_of(read_manifest(manifest), split, settings.language)
    _, words = tokenize_all([], references, settings.language)
    report.line(f"paraphrases: of {sum(map(len, words.values()))} references")
    count = write_paraphrases(paraphrases, words)
    report.line(f"paraphrases: {count} entries")
