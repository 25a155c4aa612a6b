from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_pair_lengths(
    pairs: In[kinds.PairsFile],
    manifest: In[kinds.ManifestFile],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw text lengths in words or Chinese characters before and after cleaning: figure 8 of Peng 2025."""
    import numpy as np

    from vitcapr.extensions.papers.paper_figures import lengths_by_language
    from vitcapr.extensions.papers.preprocessing_claims import text_length
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.pair_files import read_pair_table
    from vitcapr.report.figures.style import save_pictures

    captions = read_manifest(manifest).captions
    captions = captions.assign(raw=read_pair_table(pairs, captions["caption_id"].tolist())["raw"])
    lengths = {}
    for language, part in captions.groupby("language"):
        raw, cleaned = (np.array([text_length(text, str(language)) for text in part[name]]) for name in ("raw", "text"))
        lengths[str(language)] = raw, cleaned
    save_pictures(lengths_by_language(lengths), pictures, report)
