"""Train a WordPiece tokenizer on the captions of the training split."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.artefacts.manifest import read_manifest
from vitcapr.cli.parts.options import Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.matcher import TrainTokenizerSettings
from vitcapr.errors import UserError
from vitcapr.files import write_text
from vitcapr.progress import Reporter
from vitcapr.text.wordpiece import train_wordpiece


def main(
    manifest: ManifestFile,
    output: Annotated[Path, typer.Option(help="tokenizer.json to write")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Train a WordPiece tokenizer on the captions of the training split alone."""
    chosen = parse_settings(TrainTokenizerSettings, settings).tokenizer
    captions = read_manifest(manifest).captions_of("train")
    texts = captions["text"][captions["language"].isin(chosen.languages)].tolist()
    if not texts:
        raise UserError(
            f"the training split has no caption in {' or '.join(chosen.languages)}",
            where=manifest,
            remedy="name its languages in tokenizers",
        )
    with Reporter(log) as reporter:
        tokenizer = train_wordpiece(texts, chosen.pieces, chosen.min_count)
        write_text(output, tokenizer.to_str(pretty=True) + "\n")
        lengths = [len(encoding.ids) for encoding in tokenizer.encode_batch(texts)]
        reporter.line(
            f"{tokenizer.get_vocab_size():,} pieces from {len(texts):,} captions in {', '.join(chosen.languages)}; "
            f"{sum(lengths) / len(lengths):.1f} tokens a caption, {max(lengths)} at most"
        )


if __name__ == "__main__":
    launch(main)
