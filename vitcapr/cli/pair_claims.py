"""What the paper says of its preprocessing, beside what is measured here: claims.json, claims.md."""

import random
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Log, ManifestFile
from vitcapr.cli.parts.stage import launch
from vitcapr.data.images import ImageSource
from vitcapr.data.pairs.claims import Picture, base64_claims, claims_table, length_claim, text_claims, text_length
from vitcapr.data.pairs.dataset import read_pairs
from vitcapr.files import read_json, write_json, write_text
from vitcapr.progress import Reporter
from vitcapr.tables.markdown import to_markdown

SAMPLE = 1000
"""Pictures whose bytes are counted: the sums are of ratios that hardly differ between pictures."""


def main(
    manifest: ManifestFile,
    output: Annotated[Path, typer.Option(help="claims.json to write.")],
    table: Annotated[Path, typer.Option(help="claims.md to write.")],
    log: Log = None,
) -> None:
    """Measure the paper's claims about cleaning and Base64 on these pairs."""
    data = read_manifest(manifest)
    raw = read_pairs(manifest.parent / "pairs.parquet", data.captions["caption_id"].tolist())["raw"]
    lengths: dict[str, list[int]] = defaultdict(list)
    for text, language in zip(raw, data.captions["language"], strict=True):
        lengths[language].append(text_length(text, language))
    removed = read_json(manifest.parent / "cleaning.json")["languages"]
    rows = sorted(random.Random(0).sample(range(len(data.images)), min(SAMPLE, len(data.images))))
    with Reporter(log) as reporter, ImageSource(data.image_root) as source:
        pictures = []
        with reporter.track("pair_claims", len(rows), "images") as bar:
            for path, width, height in data.images.iloc[rows][["path", "width", "height"]].itertuples(index=False):
                pictures.append(Picture(len(source.read(path)), int(width), int(height)))
                bar.advance()
        claims = [length_claim(lengths[language], language) for language in sorted(lengths)]
        claims += text_claims(removed) if removed else []
        claims += base64_claims(pictures)
        title = f"Claims about preprocessing: {len(data.captions):,} pairs, {len(pictures):,} pictures measured"
        write_json(output, {"format": "vitcapr-claims-1", "claims": [asdict(claim) for claim in claims]})
        page = to_markdown(claims_table(claims, title))
        write_text(table, page)
        reporter.line(page.rstrip())


if __name__ == "__main__":
    launch(main)
