from vitcapr.errors import UserError
from vitcapr.formats import kinds
from vitcapr.pipeline.stage import In, Language, Out, stage
from vitcapr.progress import Reporter


@stage()
def select_language(
    all_languages: In[kinds.EmbeddingsFile],
    manifest: In[kinds.ManifestFile],
    language: Language,
    report: Reporter,
    embeddings: Out[kinds.EmbeddingsFile],
) -> None:
    """Keep the captions of one language, and the images that have one, to score this language separately."""
    import numpy as np

    from vitcapr.formats.embeddings import Embeddings, read_embeddings, write_embeddings
    from vitcapr.formats.manifest import read_manifest

    found = read_embeddings(all_languages)
    kept = read_manifest(manifest).caption_table.column("language").to_numpy()[found.caption_row] == language
    if not kept.any():
        raise UserError(f"no caption in '{language}' was embedded", where=all_languages)
    images, owner = np.unique(found.caption_image[kept], return_inverse=True)
    selected = Embeddings(
        images=found.images[images],
        captions=found.captions[kept],
        image_row=found.image_row[images],
        caption_row=found.caption_row[kept],
        caption_image=owner.astype(np.int32),
    )
    write_embeddings(embeddings, selected)
    report.line(
        f"{kept.sum()} of {len(kept)} captions, of {len(images)} of {len(found.images)} images, are in {language}"
    )
