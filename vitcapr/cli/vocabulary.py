"""Count the words of the captions, keep the frequent ones, and write every caption as numbers."""

from pathlib import Path
from typing import Annotated

import typer

from vitcapr.cli.parts.options import Log, ManifestFile, Settings
from vitcapr.cli.parts.stage import launch
from vitcapr.config.base import parse_settings
from vitcapr.config.text import VocabularySettings
from vitcapr.data.manifest import read_manifest
from vitcapr.errors import UserError
from vitcapr.progress import Reporter
from vitcapr.text.normalise import words_of
from vitcapr.text.tokens import TokenTable
from vitcapr.text.vocabulary import Vocabulary


def main(
    manifest: ManifestFile,
    output: Annotated[Path, typer.Option(help="The vocabulary to write, JSON.")],
    tokens: Annotated[Path, typer.Option(help="The table of all captions as word numbers to write, .npz.")],
    settings: Settings = "{}",
    log: Log = None,
) -> None:
    """Count the words of the captions, keep the frequent ones, and write every caption as numbers."""
    text = parse_settings(VocabularySettings, settings).text
    with Reporter(log) as reporter:
        captions = read_manifest(manifest).captions_of(language=text.language)
        counted = captions["split"].isin(text.vocabulary.splits).to_numpy()
        if not counted.any():
            raise UserError(
                f"no caption in the language '{text.language}' in {' or '.join(text.vocabulary.splits)}",
                where=manifest,
                remedy="check text.language and text.vocabulary.splits",
            )
        words = [
            words_of(caption, non_letters=text.normalise.non_letters, drop_one_letter=text.normalise.drop_one_letter)
            for caption in captions["text"]
        ]
        vocabulary = Vocabulary.build(
            (words[row] for row in counted.nonzero()[0]),
            min_count=text.vocabulary.min_count,
            inclusive=text.vocabulary.threshold == "inclusive",
            unknown=text.vocabulary.unknown,
            splits=text.vocabulary.splits,
            recipe=text.canonical(),
        )
        encoded = [vocabulary.encode(caption) for caption in words]
        # <start> <end> alone would teach a captioner to say nothing.
        kept = [row for row, caption in enumerate(encoded) if len(caption) > 2]
        table = TokenTable.build(
            [encoded[row] for row in kept],
            image_row=captions["image_row"].to_numpy()[kept].tolist(),
            caption_row=captions["caption_row"].to_numpy()[kept].tolist(),
        )
        vocabulary.write(output)
        table.write(tokens)
        reporter.line(
            f"{vocabulary.signature}: {len(vocabulary)} entries from {int(counted.sum())} captions, "
            f"{vocabulary.token_coverage:.2%} of running words; {sum(vocabulary.rare.values())} rarer words left out"
        )
        if len(kept) < len(encoded):
            reporter.line(f"{len(encoded) - len(kept)} of {len(encoded)} captions have no known word and are left out")


if __name__ == "__main__":
    launch(main)
