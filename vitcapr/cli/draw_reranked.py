"""Draw images with their caption before and after reranking: reranked.<format>."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from vitcapr.artefacts.captions import DecodedCaption, read_captions, read_results
from vitcapr.artefacts.manifest import Manifest, read_manifest
from vitcapr.cli.parts.options import CaptionedSplit, Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.figures import FigureSettings
from vitcapr.data.images import ImageSource
from vitcapr.figures.examples import choose, read_picture, rows_of_split
from vitcapr.figures.reranked import Reranked, reranked_sheet
from vitcapr.figures.style import save_figure
from vitcapr.metrics.bootstrap import Array
from vitcapr.metrics.captions.cider import cider
from vitcapr.metrics.inputs import Caption
from vitcapr.metrics.oracle import is_oracle
from vitcapr.metrics.references import references_of, tokenize_all
from vitcapr.progress import Reporter


def main(
    before: Annotated[Path, typer.Option(help="captions.json of the decoding.")],
    after: Annotated[Path, typer.Option(help="captions.json of the reranking.")],
    manifest: ManifestFile,
    split: CaptionedSplit,
    output_dir: Annotated[Path, typer.Option(help="Receives reranked.<format>.")],
    language: Annotated[str, typer.Option(help="Language of the references.")] = "en",
    scorer_timeout: Annotated[float, typer.Option(help="Seconds that the tokenizer may take.")] = 300,
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Draw images with their caption before and after reranking: reranked.<format>.

    They are drawn at random from the images whose caption changed, and each caption has its CIDEr beside it, so that
    those which reranking made worse are shown as often as they occur.
    """
    options = parse_settings(FigureSettings, settings).figures
    data = read_manifest(manifest)
    old, new = read_captions(before), read_captions(after)
    image_ids = data.images["image_id"].tolist()
    rows = rows_of_split(data, split, {"the decoding": old, "the reranking": new})
    ciders = _ciders(data, split, language, [image_ids[row] for row in rows], [old, new], scorer_timeout)
    changed = [place for place, row in enumerate(rows) if old[image_ids[row]].caption != new[image_ids[row]].caption]
    chosen = choose(changed, options.examples, options.seed)
    references = data.captions_of(split, language).drop_duplicates("image_row").set_index("image_row")["text"]
    with Reporter(log) as reporter, ImageSource(data.image_root) as source:
        examples = [
            Reranked(
                picture=read_picture(data, source, rows[place]),
                before=old[image_ids[rows[place]]].tokens,
                after=new[image_ids[rows[place]]].tokens,
                scores=(float(ciders[0][place]), float(ciders[1][place])),
                reference=str(references[rows[place]]),
            )
            for place in chosen
        ]
        note = _note(len(rows), len(chosen), (ciders[1] - ciders[0])[changed], options.seed)
        if is_oracle(read_results(after).values()):
            note = f"Chosen by an oracle from the references: a ceiling, not a result. {note}"
        for path in save_figure(reranked_sheet(examples, note), output_dir, "reranked", options.formats):
            reporter.line(f"{path}: {note}")


def _ciders(
    data: Manifest,
    split: str,
    language: str,
    images: Sequence[str],
    systems: Sequence[dict[str, DecodedCaption]],
    timeout: float,
) -> list[Array]:
    """CIDEr of each of ``images`` for each system, (n,) each, as ``score`` gives it when these are all of the split."""
    references = references_of(data, split, language)
    flat = [Caption(image, system[image].caption) for system in systems for image in images]
    words, reference_words = tokenize_all(flat, {image: references[image] for image in images}, timeout)
    others = list(reference_words.values())
    parts = [words[start : start + len(images)] for start in range(0, len(words), len(images))]
    return [cider(part, others).per_image for part in parts]


def _note(images: int, shown: int, differences: Array, seed: int) -> str:
    if not len(differences):
        return f"Reranking changed no caption of {images} images."
    rose, fell = (int(np.count_nonzero(way)) for way in (differences > 0, differences < 0))
    return (
        f"{shown} of the {len(differences)} images (of {images}) whose caption reranking changed, drawn at random with "
        f"seed {seed}. Among these {len(differences)}, CIDEr rose for {rose}, fell for {fell} and stayed for "
        f"{len(differences) - rose - fell}. Struck through: words that went; underlined: words that came."
    )


if __name__ == "__main__":
    launch(main)
