from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Out, stage
from vitcapr.progress import Reporter

SAMPLE = 1000
"""Number of pictures whose bytes are counted; the ratios hardly differ between pictures."""


@stage()
def pair_claims(
    manifest: In[kinds.ManifestFile],
    pairs: In[kinds.PairsFile],
    cleaning: In[kinds.CleaningFile],
    report: Reporter,
    table: Out[kinds.TableFile],
) -> None:
    """Measure the BERT-ViT paper's claims about cleaning and Base64 on these pairs."""
    import random
    from collections import defaultdict

    from vitcapr.data.images import ImageSource
    from vitcapr.extensions.papers.preprocessing_claims import (
        base64_claims,
        claims_table,
        length_claim,
        text_claims,
        text_length,
    )
    from vitcapr.files import write_text
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.formats.pair_files import read_cleaning, read_pair_table
    from vitcapr.formats.tables import to_markdown

    data = read_manifest(manifest)
    raw = read_pair_table(pairs, data.captions["caption_id"].tolist())["raw"]
    lengths: dict[str, list[int]] = defaultdict(list)
    for text, language in zip(raw, data.captions["language"], strict=True):
        lengths[language].append(text_length(text, language))
    removed = read_cleaning(cleaning)
    rows = sorted(random.Random(0).sample(range(len(data.images)), min(SAMPLE, len(data.images))))
    pictures = []
    with ImageSource(data.image_root) as source, report.track("pair_claims", len(rows), "images") as bar:
        for path, width, height in data.images.iloc[rows][["path", "width", "height"]].itertuples(index=False):
            pictures.append((len(source.read(path)), 3 * int(width) * int(height)))
            bar.advance()
    measured = [length_claim(lengths[language], language) for language in sorted(lengths)]
    measured += text_claims(removed) if removed else []
    measured += base64_claims(pictures)
    title = f"Claims about preprocessing: {len(data.captions):,} pairs, {len(pictures):,} pictures measured"
    page = to_markdown(claims_table(measured, title))
    write_text(table, page)
    report.line(page.rstrip())
