from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import MANIFEST, Drawing, Pictures


@Drawing(
    files=lambda _: ["pairs/lengths"],
    inputs=lambda _: {
        "pairs": "results/{experiment}/data/pairs.parquet",
        "manifest": MANIFEST,
    },
    each=lambda experiment: [{}] if experiment.config.data.dataset == "pairs" else [],
    caption="How long the texts of the pairs are in each language, before and after cleaning: in words, for "
    "Chinese in characters. Texts of which cleaning leaves nothing are not counted.",
    category="Data",
    labels={"figure": "text lengths by language"},
)
def draw_pair_lengths(pairs: In[kinds.PairsFile], manifest: In[kinds.ManifestFile]) -> Pictures:
    """Draw text lengths in words or Chinese characters before and after cleaning: figure 8 of Peng 2025."""
    import numpy as np

    from vitcapr.extensions.papers.preprocessing_claims import text_length
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.pairs import read_pair_table
    from vitcapr.report.figures.text import lengths_by_language

    captions = read_manifest(manifest).captions
    captions = captions.assign(raw=read_pair_table(pairs, captions["caption_id"].tolist())["raw"])
    lengths = {}
    for language, part in captions.groupby("language"):
        raw, cleaned = (np.array([text_length(text, str(language)) for text in part[name]]) for name in ("raw", "text"))
        lengths[str(language)] = raw, cleaned
    return lengths_by_language(lengths)
