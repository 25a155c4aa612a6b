from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter


@stage()
def draw_caption_lengths(
    tokens: In[kinds.TokensFile],
    manifest: In[kinds.ManifestFile],
    report: Reporter,
    pictures: list[Out[kinds.FigureFile]],
) -> None:
    """Draw the distribution of caption lengths in words, for each split."""
    from vitcapr.extensions.figures.text_figures import caption_lengths
    from vitcapr.formats.manifest import SPLITS, read_manifest
    from vitcapr.formats.tokens import TokenTable
    from vitcapr.report.figures.style import save_pictures

    data = read_manifest(manifest)
    table = TokenTable.read(tokens, data)
    split_of = data.image_table.column("split").to_numpy()[table.image_row]
    # The token counts include the start and end tokens, which are not words.
    lengths = {split: table.lengths[split_of == split] - 2 for split in SPLITS}
    save_pictures(caption_lengths(lengths), pictures, report)
