from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In
from vitcapr.stages._drawing import MANIFEST, Drawing, Pictures


@Drawing(
    files=lambda _: ["text/lengths"],
    inputs=lambda _: {
        "tokens": "results/{experiment}/text/tokens.npz",
        "manifest": MANIFEST,
    },
    caption="How long the captions of each split are, in words.",
    category="Data",
    labels={"figure": "caption lengths"},
)
def draw_caption_lengths(tokens: In[kinds.TokensFile], manifest: In[kinds.ManifestFile]) -> Pictures:
    """Draw the distribution of caption lengths in words, for each split."""
    from vitcapr.formats.manifest import SPLITS, read_manifest
    from vitcapr.formats.tokens import TokenTable
    from vitcapr.report.figures.text import caption_lengths

    data = read_manifest(manifest)
    table = TokenTable.read(tokens, data)
    split_of = data.image_table.column("split").to_numpy()[table.image_row]
    # The token counts include the start and end tokens, which are not words.
    return caption_lengths({split: table.lengths[split_of == split] - 2 for split in SPLITS})
