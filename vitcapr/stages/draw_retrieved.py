"""Draw errors of retrieval."""

from typing import TYPE_CHECKING

from vitcapr.config.figures import FigureSettings
from vitcapr.formats.kinds import EmbeddingsFile, FigureFile, ManifestFile, RanksFile
from vitcapr.pipeline.figure import MANIFEST, Figure
from vitcapr.pipeline.stage import In, Out, Split, stage
from vitcapr.progress import Reporter

if TYPE_CHECKING:
    from PIL.Image import Image


@stage(
    figure=Figure(
        files=lambda _: [f"retrieved/{{retriever}}/{{split}}/{way}" for way in ("image_to_text", "text_to_image")],
        inputs=lambda _: {
            "embeddings": "results/{experiment}/embeddings/{retriever}/{split}/embeddings.npz",
            "ranks": "results/{experiment}/metrics/retrieval/{retriever}/{split}/ranks.npz",
            "manifest": MANIFEST,
        },
        each=lambda experiment: experiment.retrievals,
        caption="Where {retriever} fails on the {split} split, drawn at random from all failures: the wrong match that "
        "came first beside the true one, with cosine and rank. Some wrong matches fit the picture well; the data set "
        "still counts them as wrong.",
        category="Retrieval",
        subcategory="{retriever}",
        labels={"figure": "failures", "split": "{split}"},
        mem_mb=4000,
    )
)
def draw_retrieved(
    embeddings: In[EmbeddingsFile],
    ranks: In[RanksFile],
    manifest: In[ManifestFile],
    split: Split,
    settings: FigureSettings,
    report: Reporter,
    pictures: list[Out[FigureFile]],
) -> None:
    """Draw randomly selected queries whose first match is wrong, in both directions."""
    from vitcapr.formats.embeddings import read_embeddings
    from vitcapr.formats.manifest import read_manifest
    from vitcapr.metrics.rank_files import read_ranks_of
    from vitcapr.report import direction
    from vitcapr.report.figures.examples import open_images
    from vitcapr.report.figures.retrieval import failures, image_to_text, text_to_image
    from vitcapr.report.figures.style import save_pictures

    data, count, seed = read_manifest(manifest), settings.figures.failures, settings.figures.seed
    embedded = read_embeddings(embeddings, data, split)
    true = read_ranks_of(ranks, embedded).ranks
    text = data.captions["text"].iloc[embedded.caption_row].tolist().__getitem__
    to_text, to_image = direction.image_to_text(embedded), direction.text_to_image(embedded)
    with open_images(data) as read:

        def image(position: int) -> "Image":
            return read(int(embedded.image_row[position]))

        images = failures(to_text, true.i2t, count, seed, image, text)
        captions = failures(to_image, true.t2i, count, seed, text, image)
    missed_images, missed_captions = int((true.i2t > 1).sum()), int((true.t2i > 1).sum())
    report.line(f"the first match is wrong for {missed_images} of {len(true.i2t)} images")
    report.line(f"the first match is wrong for {missed_captions} of {len(true.t2i)} captions")
    figures = {
        "image_to_text": image_to_text(images, missed_images, len(true.i2t)),
        "text_to_image": text_to_image(captions, missed_captions, len(true.t2i)),
    }
    save_pictures(figures, pictures, report)
